// wgmma for sm_90a: m64nNk16, f32 accumulators, both operands in shared memory, K-major.
#pragma once

#include <pipelink/descriptor.cuh>
#include <pipelink/wgmma_shapes.cuh>

#include <cstdint>

namespace pipelink {

/// The accumulators of one warpgroup, as one thread holds them (see fragment.cuh).
template <int N>
using Accumulator = float[N / 2];

/// Orders earlier accesses to the accumulator registers before those of the next wgmma.
/// @threads a converged warpgroup
/// @ptx wgmma.fence.sync.aligned
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// Makes one group of the wgmma issued since the last commit.
/// @threads a converged warpgroup
/// @ptx wgmma.commit_group.sync.aligned
/// @operation mma PORT: one group a ring item
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `Pending` groups of this warpgroup are in flight.
/// @threads a converged warpgroup
/// @ptx wgmma.wait_group.sync.aligned
/// @operation await mma N
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// Keeps reads of the accumulators behind the wait above: to the compiler they are values of the
/// wgmma statement, which it could read as soon as that is issued (ptxas then serializes: C7514).
/// @threads a converged warpgroup
/// @ptx none
template <int Registers>
__device__ __forceinline__ void wgmma_settle(float (&acc)[Registers]) {
#pragma unroll
  for (int i = 0; i < Registers; ++i) asm volatile("" : "+f"(acc[i])::"memory");
}

/// acc = A x B^T + (accumulate ? acc : 0) over a tile of K columns; A and B by their descriptors.
/// @threads a converged warpgroup
/// @ptx wgmma.mma_async.sync.aligned.m64nNk16.f32, once for every 16 columns
/// @operation mma PORT
template <int N, int K, typename T>
__device__ __forceinline__ void wgmma_tile(float (&acc)[N / 2], uint64_t a, uint64_t b,
                                           bool accumulate) {
#pragma unroll
  for (int step = 0; step < K / kStepK; ++step) {
    Wgmma<N, T>::step(acc, k_step<T>(a, step), k_step<T>(b, step), accumulate || step != 0);
  }
}

}  // namespace pipelink
