// The operations of the device runtime.  They are external functions: the runtime is an object of
// its own, chosen when the megakernel is linked (release, watchdog, ...), and inlined there.
//
// Each comment says what a call does, which threads call it, the PTX instruction it stands for, and
// the operation of a contract's body that it performs.  "A warp" is always a whole, converged warp;
// where a single thread has to act, the runtime elects it.
#pragma once

#include <pipelink/abi.cuh>

extern "C" {

// --- rings: producer ------------------------------------------------------------------------

/// Waits until the cursor's stage is empty.
/// @threads every warp of the producer
/// @ptx mbarrier.try_wait.parity on the empty barrier, repeated until it succeeds
/// @operation acquire PORT
__device__ void pl_ring_acquire(const pipelink::Ring& ring, const pipelink::Cursor& at);

/// Arrives once on the full barrier; its phase also waits for `bytes` of asynchronous copies.
/// @threads a warp; one elected thread arrives
/// @ptx mbarrier.arrive.expect_tx on the full barrier
/// @operation expect PORT
__device__ void pl_ring_expect(const pipelink::Ring& ring, const pipelink::Cursor& at,
                               uint32_t bytes);

/// Arrives once on the full barrier, after the generic stores of all lanes of the warp.
/// @threads a warp; one elected thread arrives
/// @ptx mbarrier.arrive on the full barrier
/// @operation commit PORT
__device__ void pl_ring_commit(const pipelink::Ring& ring, const pipelink::Cursor& at);

// --- rings: consumer ------------------------------------------------------------------------

/// Waits until the cursor's stage is full.
/// @threads every warp of the consumer
/// @ptx mbarrier.try_wait.parity on the full barrier, repeated until it succeeds
/// @operation wait PORT
__device__ void pl_ring_wait(const pipelink::Ring& ring, const pipelink::Cursor& at);

/// Arrives once on the empty barrier: no lane of this warp accesses the stage any more.
/// @threads a warp; one elected thread arrives
/// @ptx mbarrier.arrive on the empty barrier; in a cluster, one on that of every CTA whose copies
/// reach this one
/// @operation release PORT
__device__ void pl_ring_release(const pipelink::Ring& ring, const pipelink::Cursor& at);

// --- rings: both endpoints --------------------------------------------------------------------

/// Moves the cursor to the next stage.
/// @threads every thread of the role
/// @ptx none
/// @operation none: the cursor counts the items of the ring
__device__ void pl_ring_advance(const pipelink::Ring& ring, pipelink::Cursor& at);

// --- data movement --------------------------------------------------------------------------

/// Copies one box of a 2-D tensor map to `offset` bytes into the cursor's stage and completes on
/// its full barrier.  `x` counts elements of the contiguous dimension, `y` rows.  Elements outside
/// the tensor arrive as zeros and count as bytes.
/// @threads a warp; one elected thread issues
/// @ptx cp.async.bulk.tensor.2d.shared::cluster.global, in a cluster .multicast::cluster
/// @operation copy TENSOR -> PORT.TILE
__device__ void pl_ring_copy_tile(const pipelink::Ring& ring, const pipelink::Cursor& at,
                                  uint32_t offset, const pipelink::TensorMap* tensor, int32_t x,
                                  int32_t y);

/// Copies `bytes` (a multiple of 16) from global memory (16-byte aligned) to `offset` bytes into
/// the cursor's stage and completes on its full barrier.
/// @threads a warp; one elected thread issues
/// @ptx cp.async.bulk.shared::cluster.global
/// @operation copy TENSOR -> PORT.TILE
__device__ void pl_ring_copy_bulk(const pipelink::Ring& ring, const pipelink::Cursor& at,
                                  uint32_t offset, const void* source, uint32_t bytes);

/// Stores one box from shared memory to a 2-D tensor map and commits it as one bulk group.  `x`
/// counts elements of the contiguous dimension, `y` rows; elements outside the tensor are dropped.
/// @threads a warp; one elected thread issues
/// @ptx cp.async.bulk.tensor.2d.global.shared::cta and cp.async.bulk.commit_group
/// @operation store PORT -> TENSOR
__device__ void pl_store_tile(const pipelink::TensorMap* tensor, uint32_t shared, int32_t x,
                              int32_t y);

/// Stores `bytes` (a multiple of 16) to global memory and commits them as one bulk group.
/// @threads a warp; one elected thread issues
/// @ptx cp.async.bulk.global.shared::cta and cp.async.bulk.commit_group
/// @operation store PORT -> TENSOR
__device__ void pl_store_bulk(void* destination, uint32_t shared, uint32_t bytes);

/// Waits until at most `pending` (0..7, a constant) bulk groups of this warp still read shared
/// memory.
/// @threads a warp, the one that stored
/// @ptx cp.async.bulk.wait_group.read
/// @operation await store N
__device__ void pl_store_wait(uint32_t pending);

/// Waits until at most `pending` (0..7, a constant) bulk groups of this warp are incomplete: what
/// the others stored is in global memory, visible to this warp.
/// @threads a warp, the one that stored
/// @ptx cp.async.bulk.wait_group
/// @operation await store N full
__device__ void pl_store_complete(uint32_t pending);

/// Orders generic accesses to shared memory and accesses by the asynchronous proxy.
/// @threads every thread whose accesses are to be ordered
/// @ptx fence.proxy.async.shared::cta
/// @operation fence async
__device__ void pl_fence_async();

/// Orders generic accesses to global memory and accesses by the asynchronous proxy.
/// @threads every thread whose accesses are to be ordered
/// @ptx fence.proxy.async.global
/// @operation fence global
__device__ void pl_fence_global();

// --- tensor memory (sm_100a) ----------------------------------------------------------------

/// D += A x B for one k-step of 16: D in the stage of `accumulators`, A and B by their matrix
/// descriptors in shared memory; `accumulate` 0 overwrites D.  `instruction`: see tcgen05.cuh.
/// @threads a warp; one elected thread issues
/// @ptx tcgen05.mma.cta_group::1.kind::f16
/// @operation mma PORT -> ACCUMULATORS
__device__ void pl_tensor_mma(const pipelink::Ring& accumulators, const pipelink::Cursor& at,
                              uint64_t a, uint64_t b, uint32_t instruction, uint32_t accumulate);

/// Arrives once on the empty barrier of a ring of operands when all mma that this warp has issued
/// are complete.  Nothing waits here.
/// @threads a warp, the one that issued the mma
/// @ptx tcgen05.commit on the empty barrier
/// @operation commit mma -> PORT, of a port that is read
__device__ void pl_mma_commit_empty(const pipelink::Ring& ring, const pipelink::Cursor& at);

/// Arrives once on the full barrier of a ring of accumulators when all mma that this warp has
/// issued are complete.  Nothing waits here.
/// @threads a warp, the one that issued the mma
/// @ptx tcgen05.commit on the full barrier
/// @operation commit mma -> PORT, of a port that is written
__device__ void pl_mma_commit_full(const pipelink::Ring& ring, const pipelink::Cursor& at);

/// Loads 32 columns, from column `first` of the cursor's stage on: thread t of the warpgroup
/// receives row t.  `values` must not be used before pl_tensor_await_load.
/// @threads a warp, for the 32 rows of its position in the warpgroup
/// @ptx tcgen05.ld.32x32b.x32
/// @operation read PORT
__device__ void pl_tensor_load_32(const pipelink::Ring& ring, const pipelink::Cursor& at,
                                  uint32_t thread, uint32_t first, float (&values)[32]);

/// Stores 32 columns, from column `first` of the cursor's stage on: thread t of the warpgroup
/// writes row t.
/// @threads a warp, for the 32 rows of its position in the warpgroup
/// @ptx tcgen05.st.32x32b.x32
/// @operation write PORT
__device__ void pl_tensor_store_32(const pipelink::Ring& ring, const pipelink::Cursor& at,
                                   uint32_t thread, uint32_t first, const float (&values)[32]);

/// Waits until the tensor-memory loads of this warp are complete.
/// @threads a warp, the one that loaded
/// @ptx tcgen05.wait::ld
/// @operation await tensor load
__device__ void pl_tensor_await_load();

/// Waits until the tensor-memory stores of this warp are complete.
/// @threads a warp, the one that stored
/// @ptx tcgen05.wait::st
/// @operation await tensor store
__device__ void pl_tensor_await_store();

/// Orders this thread's accesses to tensor memory before what it signals next.
/// @threads every thread that accessed tensor memory
/// @ptx tcgen05.fence::before_thread_sync
/// @operation fence tensor before
__device__ void pl_tensor_fence_before();

/// Orders this thread's next accesses to tensor memory after what it waited for.
/// @threads every thread that will access tensor memory
/// @ptx tcgen05.fence::after_thread_sync
/// @operation fence tensor after
__device__ void pl_tensor_fence_after();

// --- counters between CTAs ------------------------------------------------------------------

/// Increments counter `index` once for this warp, after all earlier accesses of its lanes.
/// @threads every warp of the role; one elected thread increments
/// @ptx red.release.add on global memory, at the counter's scope
/// @operation signal PORT[INDEX]
__device__ void pl_counter_signal(const pipelink::Counters& counters, uint32_t index);

/// Waits until all warps of `signals` signals have incremented counter `index`; all lanes then see
/// what those warps wrote before.
/// @threads every warp of the role; one elected thread polls
/// @ptx ld.acquire on global memory, at the counter's scope, repeated until the count is reached
/// @operation wait_until PORT[INDEX] COUNT
__device__ void pl_counter_wait_until(const pipelink::Counters& counters, uint32_t index,
                                      uint32_t signals);

// --- named barriers -------------------------------------------------------------------------

/// Arrives at a named barrier and waits until all of its threads have arrived.
/// @threads a warp
/// @ptx barrier.cta.sync.aligned
/// @operation sync BARRIER
__device__ void pl_barrier_sync(const pipelink::NamedBarrier& barrier);

/// Arrives at a named barrier without waiting.
/// @threads a warp
/// @ptx barrier.cta.arrive.aligned
/// @operation arrive BARRIER
__device__ void pl_barrier_arrive(const pipelink::NamedBarrier& barrier);
}

namespace pipelink {

/// The address of the cursor's stage: in the shared window, or in tensor memory.
__device__ __forceinline__ uint32_t stage_address(const Ring& ring, const Cursor& at) {
  return ring.data + at.stage * ring.stage_bytes;
}

/// The value of lane 0, in a form that the compiler knows to be uniform in the warp.
__device__ __forceinline__ uint32_t uniform(uint32_t value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

}  // namespace pipelink
