// The operations of the device runtime.  They are external functions: the runtime is an object of
// its own, chosen when the megakernel is linked (release, watchdog, ...), and inlined there.
//
// Whole, converged warps call them; where a single thread must act, the runtime elects it.
#pragma once

#include <pipelink/abi.cuh>

extern "C" {

// --- rings: producer ------------------------------------------------------------------------
/// Waits until the cursor's stage is empty.
__device__ void pl_ring_acquire(const pipelink::Ring& ring, const pipelink::Cursor& at);
/// Arrives on `full` once for this warp and announces `bytes` of asynchronous copies.
__device__ void pl_ring_expect(const pipelink::Ring& ring, const pipelink::Cursor& at,
                               uint32_t bytes);
/// Arrives on `full` once for this warp, after the generic stores of all its lanes.
__device__ void pl_ring_commit(const pipelink::Ring& ring, const pipelink::Cursor& at);

// --- rings: consumer ------------------------------------------------------------------------
/// Waits until the cursor's stage is full.
__device__ void pl_ring_wait(const pipelink::Ring& ring, const pipelink::Cursor& at);
/// Arrives on `empty` once for this warp: none of its lanes touches the stage any more.
__device__ void pl_ring_release(const pipelink::Ring& ring, const pipelink::Cursor& at);

// --- rings: both ----------------------------------------------------------------------------
/// Moves the cursor to the next stage.
__device__ void pl_ring_advance(const pipelink::Ring& ring, pipelink::Cursor& at);

// --- data movement --------------------------------------------------------------------------
/// Copies one box of a 2-D tensor map to `offset` bytes into the cursor's stage; completes on
/// `full`.  `x` counts elements of the contiguous dimension, `y` rows.  Out-of-bounds elements
/// arrive as zeros and count as bytes.
__device__ void pl_ring_copy_tile(const pipelink::Ring& ring, const pipelink::Cursor& at,
                                  uint32_t offset, const pipelink::TensorMap* tensor, int32_t x,
                                  int32_t y);
/// Copies `bytes` (a multiple of 16) from global memory (16-byte aligned); completes on `full`.
__device__ void pl_ring_copy_bulk(const pipelink::Ring& ring, const pipelink::Cursor& at,
                                  uint32_t offset, const void* source, uint32_t bytes);
/// Stores one box from shared memory to a 2-D tensor map and commits it as one bulk group.
__device__ void pl_store_tile(const pipelink::TensorMap* tensor, uint32_t shared, int32_t x,
                              int32_t y);
/// Stores `bytes` (a multiple of 16) to global memory and commits them as one bulk group.
__device__ void pl_store_bulk(void* destination, uint32_t shared, uint32_t bytes);
/// Waits until at most `pending` (0..7, a constant) bulk groups of this warp still read shared
/// memory.
__device__ void pl_store_wait(uint32_t pending);
/// Makes generic accesses to shared memory visible to the asynchronous proxy, and the reverse.
__device__ void pl_fence_async();

/// Waits until at most `pending` (0..7, a constant) bulk groups of this warp are incomplete: what
/// the others stored is in global memory, visible to this warp.
__device__ void pl_store_complete(uint32_t pending);
/// Makes generic accesses to global memory visible to the asynchronous proxy, and the reverse.
__device__ void pl_fence_global();

// --- tensor memory (sm_100a) ----------------------------------------------------------------
// One thread of the warp issues; the others wait for nobody.
/// D += A x B for one k-step of 16: D in the stage of `accumulators`, A and B by their matrix
/// descriptors in shared memory; `accumulate` 0 overwrites D.  `instruction`: see tcgen05.cuh.
__device__ void pl_tensor_mma(const pipelink::Ring& accumulators, const pipelink::Cursor& at,
                              uint64_t a, uint64_t b, uint32_t instruction, uint32_t accumulate);
/// Arrives once on `empty` (a ring that is read) or `full` (accumulators) of the cursor's stage,
/// when all mma that this warp has issued are complete.
__device__ void pl_mma_commit_empty(const pipelink::Ring& ring, const pipelink::Cursor& at);
__device__ void pl_mma_commit_full(const pipelink::Ring& ring, const pipelink::Cursor& at);
/// Loads 32 columns from column `first` of the cursor's stage on: thread t of the warpgroup gets
/// row t.  `values` must not be used before pl_tensor_await_load.
__device__ void pl_tensor_load_32(const pipelink::Ring& ring, const pipelink::Cursor& at,
                                  uint32_t thread, uint32_t first, float (&values)[32]);
/// Stores 32 columns, the other way round.
__device__ void pl_tensor_store_32(const pipelink::Ring& ring, const pipelink::Cursor& at,
                                   uint32_t thread, uint32_t first, const float (&values)[32]);
/// Waits until the loads, or the stores, of this warp are complete.
__device__ void pl_tensor_await_load();
__device__ void pl_tensor_await_store();
/// Orders what this thread did to tensor memory before what it signals next, and what it does to
/// tensor memory next after what it waited for.
__device__ void pl_tensor_fence_before();
__device__ void pl_tensor_fence_after();

// --- counters between CTAs ------------------------------------------------------------------
/// Counts counter `index` one up for this warp, after everything its lanes did before.
__device__ void pl_counter_signal(const pipelink::Counters& counters, uint32_t index);
/// Waits until all warps of `signals` signals have arrived at counter `index`; all lanes then see
/// what these warps did before.
__device__ void pl_counter_wait_until(const pipelink::Counters& counters, uint32_t index,
                                 uint32_t signals);

// --- named barriers -------------------------------------------------------------------------
__device__ void pl_barrier_sync(const pipelink::NamedBarrier& barrier);
__device__ void pl_barrier_arrive(const pipelink::NamedBarrier& barrier);
}

namespace pipelink {

/// The shared-window address of the cursor's stage.
__device__ __forceinline__ uint32_t stage_address(const Ring& ring, const Cursor& at) {
  return ring.data + at.stage * ring.stage_bytes;
}

/// The value of lane 0, so that the compiler knows it to be uniform in the warp.
__device__ __forceinline__ uint32_t uniform(uint32_t value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

}  // namespace pipelink
