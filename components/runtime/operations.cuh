// The operations that all builds of the device runtime share.  The builds differ in how they wait
// and what they record: they define `wait_parity`, `wait_named`, `wait_counter` and
// `OperationScope` first.  A scope lives as long as its operation: OperationScope(operation, site,
// stage, value).
#pragma once

#include "cluster.cuh"

namespace pipelink {
namespace runtime {

__device__ __forceinline__ uint32_t full_of(const Ring& ring, const Cursor& at) {
  return ring.full + 8 * at.stage;
}

__device__ __forceinline__ uint32_t empty_of(const Ring& ring, const Cursor& at) {
  return ring.empty + 8 * at.stage;
}

/// One arrival for the warp, after all earlier accesses of its lanes.
__device__ __forceinline__ void arrive_warp(uint32_t barrier) {
  __syncwarp();
  asm volatile(
      "{.reg .pred p; elect.sync _|p, 0xffffffff;\n"
      "@p mbarrier.arrive.shared::cta.b64 _, [%0];}" ::"r"(barrier)
      : "memory");
}

}  // namespace runtime
}  // namespace pipelink

// The operand is an immediate; a constant `pending` leaves one case.
#define PL_WAIT_GROUP_CASE(form, n) \
  asm volatile("cp.async.bulk.wait_group" form " " #n ";" ::: "memory")
#define PL_WAIT_GROUP(form, pending)             \
  switch (pending) {                             \
    case 0: PL_WAIT_GROUP_CASE(form, 0); break;  \
    case 1: PL_WAIT_GROUP_CASE(form, 1); break;  \
    case 2: PL_WAIT_GROUP_CASE(form, 2); break;  \
    case 3: PL_WAIT_GROUP_CASE(form, 3); break;  \
    case 4: PL_WAIT_GROUP_CASE(form, 4); break;  \
    case 5: PL_WAIT_GROUP_CASE(form, 5); break;  \
    case 6: PL_WAIT_GROUP_CASE(form, 6); break;  \
    default: PL_WAIT_GROUP_CASE(form, 7); break; \
  }

extern "C" {

using pipelink::Counters;
using pipelink::Cursor;
using pipelink::NamedBarrier;
using pipelink::Ring;
using pipelink::TensorMap;
using pipelink::runtime::Operation;
using pipelink::runtime::OperationScope;

__device__ void pl_ring_acquire(const Ring& ring, const Cursor& at) {
  const OperationScope scope(Operation::kAcquire, ring.site, at.stage, at.phase);
  // A new mbarrier counts as having completed the phase before its first, so the producer's first
  // acquire of each stage succeeds (PTX ISA, mbarrier.test_wait: parity of the immediately
  // preceding phase).
  pipelink::runtime::wait_parity(pipelink::runtime::empty_of(ring, at), at.phase ^ 1, ring, at, 0);
}

__device__ void pl_ring_wait(const Ring& ring, const Cursor& at) {
  const OperationScope scope(Operation::kWait, ring.site, at.stage, at.phase);
  pipelink::runtime::wait_parity(pipelink::runtime::full_of(ring, at), at.phase, ring, at, 1);
}

__device__ void pl_ring_expect(const Ring& ring, const Cursor& at, uint32_t bytes) {
  const OperationScope scope(Operation::kExpect, ring.site, at.stage, bytes);
  asm volatile(
      "{.reg .pred p; elect.sync _|p, 0xffffffff;\n"
      "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;}" ::"r"(
          pipelink::runtime::full_of(ring, at)),
      "r"(bytes)
      : "memory");
}

__device__ void pl_ring_commit(const Ring& ring, const Cursor& at) {
  const OperationScope scope(Operation::kCommit, ring.site, at.stage, at.phase);
  pipelink::runtime::arrive_warp(pipelink::runtime::full_of(ring, at));
}

__device__ void pl_ring_release(const Ring& ring, const Cursor& at) {
  const OperationScope scope(Operation::kRelease, ring.site, at.stage, at.phase);
#if PL_CLUSTERS
  if (pipelink::runtime::clustered(ring)) {
    pipelink::runtime::arrive_peers(ring, pipelink::runtime::empty_of(ring, at));
    return;
  }
#endif
  pipelink::runtime::arrive_warp(pipelink::runtime::empty_of(ring, at));
}

__device__ void pl_ring_advance(const Ring& ring, Cursor& at) {
  if (++at.stage == ring.stages) {
    at.stage = 0;
    at.phase ^= 1;
  }
}

__device__ void pl_ring_copy_tile(const Ring& ring, const Cursor& at, uint32_t offset,
                                  const TensorMap* tensor, int32_t x, int32_t y) {
  const OperationScope scope(Operation::kCopyTile, ring.site, at.stage, offset);
#if PL_CLUSTERS
  const uint32_t member = pipelink::runtime::shared_member(ring, offset);
  if (member != 0) {
    if (pipelink::runtime::elect()) {
      pipelink::runtime::copy_slice(member, pipelink::stage_address(ring, at) + offset,
                                    pipelink::runtime::full_of(ring, at), tensor, x, y);
    }
    return;
  }
#endif
  if (pipelink::runtime::elect()) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4}], [%2];" ::"r"(pipelink::stage_address(ring, at) + offset),
        "l"(tensor), "r"(pipelink::runtime::full_of(ring, at)), "r"(x), "r"(y)
        : "memory");
  }
}

__device__ void pl_ring_copy_bulk(const Ring& ring, const Cursor& at, uint32_t offset,
                                  const void* source, uint32_t bytes) {
  const OperationScope scope(Operation::kCopyBulk, ring.site, at.stage, offset);
  if (pipelink::runtime::elect()) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(pipelink::stage_address(ring, at) + offset),
        "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(pipelink::runtime::full_of(ring, at))
        : "memory");
  }
}

__device__ void pl_store_tile(const TensorMap* tensor, uint32_t shared, int32_t x, int32_t y) {
  const OperationScope scope(Operation::kStoreTile, 0, 0, 0);
  __syncwarp();
  if (pipelink::runtime::elect()) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];\n"
        "cp.async.bulk.commit_group;" ::"l"(tensor),
        "r"(shared), "r"(x), "r"(y)
        : "memory");
  }
}

__device__ void pl_store_bulk(void* destination, uint32_t shared, uint32_t bytes) {
  const OperationScope scope(Operation::kStoreBulk, 0, 0, bytes);
  __syncwarp();
  if (pipelink::runtime::elect()) {
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
        "cp.async.bulk.commit_group;" ::"l"(__cvta_generic_to_global(destination)),
        "r"(shared), "r"(bytes)
        : "memory");
  }
}

__device__ void pl_store_wait(uint32_t pending) {
  const OperationScope scope(Operation::kStoreWait, 0, 0, pending);
  if (pipelink::runtime::elect()) {
    PL_WAIT_GROUP(".read", pending);
  }
  __syncwarp();
}

__device__ void pl_fence_async() {
  const OperationScope scope(Operation::kFence, 0, 0, 0);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ void pl_store_complete(uint32_t pending) {
  const OperationScope scope(Operation::kStoreWait, 0, 0, pending);
  if (pipelink::runtime::elect()) {
    PL_WAIT_GROUP("", pending);
  }
  __syncwarp();
}

__device__ void pl_fence_global() {
  const OperationScope scope(Operation::kFence, 0, 0, 1);
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

__device__ void pl_counter_signal(const Counters& counters, uint32_t index) {
  const OperationScope scope(Operation::kSignal, counters.site, index & 0xff, index);
  __syncwarp();
  if (pipelink::runtime::elect()) {
    pipelink::runtime::arrive_counter(counters.values + index, counters.scope);
  }
  __syncwarp();
}

__device__ void pl_counter_wait_until(const Counters& counters, uint32_t index, uint32_t signals) {
  const OperationScope scope(Operation::kWaitUntil, counters.site, index & 0xff,
                             signals * counters.arrivals);
  if (signals != 0 && pipelink::runtime::elect()) {
    pipelink::runtime::wait_counter(counters, index, signals * counters.arrivals);
  }
  __syncwarp();
}

__device__ void pl_barrier_sync(const NamedBarrier& barrier) {
  const OperationScope scope(Operation::kSync, barrier.site, barrier.id, barrier.threads);
  pipelink::runtime::wait_named(barrier);
}

__device__ void pl_barrier_arrive(const NamedBarrier& barrier) {
  const OperationScope scope(Operation::kArrive, barrier.site, barrier.id, barrier.threads);
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(barrier.id), "r"(barrier.threads)
               : "memory");
}
}

#undef PL_WAIT_GROUP
#undef PL_WAIT_GROUP_CASE

#include "tensor.cuh"
