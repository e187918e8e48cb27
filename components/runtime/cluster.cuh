// Rings that reach into other CTAs of a cluster.  Link-time constants of the ring select these
// paths; a ring of one CTA takes none of them.
//
// Only the cluster builds contain them: the compiler decides about unrolling and inlining from the
// size of a function, before it knows the constants, and kernels without clusters must not change.
#pragma once

#include "operation.cuh"

#ifndef PL_CLUSTERS
#define PL_CLUSTERS 0
#endif

#if PL_CLUSTERS
namespace pipelink {
namespace runtime {

/// The rank of this CTA in its cluster, counted along x first.
__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ uint32_t lane() {
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

__device__ __forceinline__ bool clustered(const Ring& ring) { return ring.kind == kClusterRing; }

/// Whether plain accesses to the ring's stages are ordered by its barriers across CTAs.
__device__ __forceinline__ bool ordered(const Ring& ring) {
  return clustered(ring) && (ring.peers & kOrderedPeers) != 0;
}

/// The rank of one of the CTAs that copies of this CTA reach: two groups that have this CTA in
/// common; `which` counts them, this CTA with the first group.
__device__ __forceinline__ uint32_t peer_of(const Ring& ring, uint32_t rank, uint32_t which) {
  const uint32_t size = ring.peers & 15, stride = ring.peers >> 4 & 15;
  const uint32_t size2 = ring.peers >> 8 & 15, stride2 = ring.peers >> 12 & 15;
  if (size2 < 2 || which < size) return rank + (which - rank / stride % size) * stride;
  const uint32_t mine = rank / stride2 % size2;
  const uint32_t other = which - size;
  return rank + (other + (other >= mine ? 1 : 0) - mine) * stride2;
}

__device__ __forceinline__ uint32_t peer_count(const Ring& ring) {
  const uint32_t size2 = ring.peers >> 8 & 15;
  return (ring.peers & 15) + (size2 < 2 ? 0 : size2 - 1);
}

/// One arrival for the warp at this barrier of every CTA whose copies reach this one, after all
/// earlier accesses of its lanes: each lane arrives in another CTA.
__device__ __forceinline__ void arrive_peers(const Ring& ring, uint32_t barrier) {
  __syncwarp();
  const uint32_t which = lane();
  if (which < peer_count(ring)) {
    const uint32_t peer = peer_of(ring, cluster_rank(), which);
    if (ordered(ring)) {
      asm volatile(
          "{.reg .b32 remote;\n"
          "mapa.shared::cluster.u32 remote, %0, %1;\n"
          "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];}" ::"r"(barrier),
          "r"(peer)
          : "memory");
    } else {
      // Only wgmma read the stage, and it is complete: no access of this thread has to be ordered.
      asm volatile(
          "{.reg .b32 remote;\n"
          "mapa.shared::cluster.u32 remote, %0, %1;\n"
          "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];}" ::"r"(barrier),
          "r"(peer)
          : "memory");
    }
  }
  __syncwarp();
}

/// The member that begins at `offset` of an item; 0 if only this CTA receives it.
__device__ __forceinline__ uint32_t shared_member(const Ring& ring, uint32_t offset) {
  if (!clustered(ring)) return 0;
  uint32_t found = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (ring.shared[i] != 0 && (ring.shared[i] & 2047) * 128 == offset) found = ring.shared[i];
  }
  return found;
}

/// Copies this CTA's slice of a box to the same place in every CTA of its group; each counts the
/// bytes on its barrier of the same stage.  The tensor map's box is a slice.  Called by one lane.
__device__ __forceinline__ void copy_slice(uint32_t member, uint32_t target, uint32_t barrier,
                                           const TensorMap* tensor, int32_t x, int32_t y) {
  const uint32_t rows = (member >> 11 & 31) * 8, row_bytes = (member >> 16 & 127) * 16;
  const uint32_t size = member >> 23 & 15, stride = member >> 27;
  const uint32_t rank = cluster_rank(), mine = rank / stride % size;
  // Bits 0, stride, 2 stride, ...: the quotient of two rows of ones.
  const uint32_t pattern = ((1u << size * stride) - 1) / ((1u << stride) - 1);
  const uint16_t mask = static_cast<uint16_t>(pattern << (rank - mine * stride));
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(target + mine * rows * row_bytes),
      "l"(tensor), "r"(barrier), "r"(x), "r"(y + static_cast<int32_t>(mine * rows)), "h"(mask)
      : "memory");
}

}  // namespace runtime
}  // namespace pipelink

#endif  // PL_CLUSTERS
