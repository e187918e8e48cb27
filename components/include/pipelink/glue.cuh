// INTERNAL: what generated glue is made of: kernel entry, barrier initialization, registers,
// handover of accumulators between warps.  Components never include this; it may change any time.
#pragma once

#include <pipelink/runtime.cuh>

namespace pipelink {

/// a / b, rounded up.
__host__ __device__ constexpr uint32_t ceildiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

/// A ring with both endpoints in this CTA; its barrier table holds full, then empty.
__device__ __forceinline__ Ring local_ring(uint32_t data, uint32_t barriers, uint32_t stage_bytes,
                                           uint32_t stages, uint32_t site) {
  return Ring{kLocalRing, data, barriers, barriers + 8 * stages, stage_bytes,
              stages,     site, 0,        {0, 0, 0, 0}};
}

/// Counters in the launcher's workspace.
__device__ __forceinline__ Counters counters_of(uint32_t* values, uint32_t arrivals, uint32_t scope,
                                                uint32_t site) {
  return Counters{values, arrivals, scope, site, {0, 0, 0}};
}

/// A member of an item that several CTAs receive alike: `size` CTAs, `stride` ranks apart.  Each
/// copies `rows` rows of `row_bytes` bytes of the member that begins at `offset`.
struct SharedMember {
  uint32_t offset, rows, row_bytes, size, stride;
};

/// The member in the form of Ring::shared.
__device__ __forceinline__ constexpr uint32_t packed(const SharedMember& member) {
  return member.offset / 128 | member.rows / 8 << 11 | member.row_bytes / 16 << 16 |
         member.size << 23 | member.stride << 27;
}

/// CTAs that copies reach: one or two groups, `size` CTAs that are `stride` ranks apart.
struct Reach {
  uint32_t size, stride, size2, stride2;
  bool ordered;  // the barriers order plain accesses of the endpoints across CTAs
};

/// A ring of a cluster: both endpoints are in this CTA, but other CTAs copy into it as well.
template <int Members>
__device__ __forceinline__ Ring cluster_ring(Ring ring, const Reach& reach,
                                             const SharedMember (&members)[Members]) {
  static_assert(Members <= 4, "a ring describes four members");
  ring.kind = kClusterRing;
  ring.peers = reach.size | reach.stride << 4 | reach.size2 << 8 | reach.stride2 << 12 |
               (reach.ordered ? kOrderedPeers : 0);
#pragma unroll
  for (int i = 0; i < Members; ++i) ring.shared[i] = packed(members[i]);
  return ring;
}

/// The rank of this CTA in its cluster, counted along x first.
/// @ptx mov.u32 %cluster_ctarank
__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Waits until all threads of all CTAs of the cluster have arrived.
/// @threads every warp of the cluster
/// @ptx barrier.cluster.arrive.release.aligned and barrier.cluster.wait.acquire.aligned
__device__ __forceinline__ void cluster_sync() {
  __syncwarp();
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

/// The shared-window address of dynamic shared memory.
__device__ __forceinline__ uint32_t shared_base(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

/// Initializes the barrier table of a ring, full then empty.
/// @threads one
/// @ptx mbarrier.init
template <uint32_t Stages>
__device__ __forceinline__ void init_ring(uint32_t barriers, uint32_t full_arrivals,
                                          uint32_t empty_arrivals) {
#pragma unroll
  for (uint32_t i = 0; i < 2 * Stages; ++i) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barriers + 8 * i),
                 "r"(i < Stages ? full_arrivals : empty_arrivals)
                 : "memory");
  }
}

/// Makes the initialized barriers visible to the asynchronous proxy and to the cluster.
/// @threads the one that initialized them
/// @ptx fence.mbarrier_init.release.cluster
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Fetches a tensor map into the descriptor cache.
/// @threads one
/// @ptx prefetch.tensormap
__device__ __forceinline__ void prefetch(const TensorMap& tensor) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&tensor) : "memory");
}

/// Releases registers of this warpgroup down to `Registers` a thread.  Only the entry may do it:
/// ptxas drops it in separately compiled units (C7504).
/// @threads a converged warpgroup
/// @ptx setmaxnreg.dec.sync.aligned
template <uint32_t Registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Requests registers for this warpgroup up to `Registers` a thread; waits until they are released.
/// @threads a converged warpgroup
/// @ptx setmaxnreg.inc.sync.aligned
template <uint32_t Registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Allocates columns of tensor memory for the CTA and writes their address to shared memory.
/// Nothing else in the kernel allocates, so the permit is relinquished immediately.
/// @threads one converged warp
/// @ptx tcgen05.alloc and tcgen05.relinquish_alloc_permit
template <uint32_t Columns>
__device__ __forceinline__ void allocate_tensor_memory(uint32_t slot) {
  asm volatile(
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\n"
      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
      "tcgen05.fence::before_thread_sync;" ::"r"(slot),
      "n"(Columns)
      : "memory");
}

/// The address that `allocate_tensor_memory` wrote, after a barrier of the CTA.
/// @threads a converged warp
__device__ __forceinline__ uint32_t tensor_base(uint32_t slot) {
  uint32_t address;
  asm volatile("tcgen05.fence::after_thread_sync;\nld.shared.b32 %0, [%1];"
               : "=r"(address)
               : "r"(slot)
               : "memory");
  return uniform(address);
}

/// Waits for all warps of the CTA; then warp 0 frees the columns.
/// @threads every warp of the CTA
/// @ptx tcgen05.dealloc
template <uint32_t Columns>
__device__ __forceinline__ void free_tensor_memory(uint32_t address, uint32_t warp) {
  __syncwarp();
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  if (warp == 0) {
    asm volatile(
        "tcgen05.fence::after_thread_sync;\n"
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address),
        "n"(Columns)
        : "memory");
  }
}

/// The ring of one warpgroup in a handover.  The warpgroups' parts of a stage are side by side;
/// each has separate full and empty barriers, one table after the other.
__device__ __forceinline__ Ring share_of(Ring ring, uint32_t share, uint32_t share_bytes) {
  ring.data += share * share_bytes;
  ring.full += share * 16 * ring.stages;
  ring.empty += share * 16 * ring.stages;
  return ring;
}

/// Registers -> shared ring: thread t of the warpgroup owns 16-byte columns t, t + 128, ...  The
/// thread with the same number reads them back, so no proxy and no other lane is involved.
/// @threads every warp of the producer
/// @ptx st.shared.v4.f32
template <int Floats>
__device__ __forceinline__ void handover_store(const Ring& ring, Cursor& at,
                                               const float (&values)[Floats], uint32_t thread) {
  pl_ring_acquire(ring, at);
  const uint32_t slot = stage_address(ring, at) + thread % 128 * 16;
#pragma unroll
  for (int i = 0; i < Floats / 4; ++i) {
    // Floats stay floats: as integers the accumulators would be copied inside the wgmma pipeline.
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(slot + i * 2048),
                 "f"(values[4 * i]), "f"(values[4 * i + 1]), "f"(values[4 * i + 2]),
                 "f"(values[4 * i + 3])
                 : "memory");
  }
  pl_ring_commit(ring, at);
}

/// Shared ring -> registers of other warps.
/// @threads every warp of the consumer
/// @ptx ld.shared.v4.f32
template <int Floats>
__device__ __forceinline__ void handover_load(const Ring& ring, Cursor& at, float (&values)[Floats],
                                              uint32_t thread) {
  pl_ring_wait(ring, at);
  const uint32_t slot = stage_address(ring, at) + thread % 128 * 16;
#pragma unroll
  for (int i = 0; i < Floats / 4; ++i) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(values[4 * i]), "=f"(values[4 * i + 1]), "=f"(values[4 * i + 2]),
                   "=f"(values[4 * i + 3])
                 : "r"(slot + i * 2048)
                 : "memory");
  }
  pl_ring_release(ring, at);
}

}  // namespace pipelink
