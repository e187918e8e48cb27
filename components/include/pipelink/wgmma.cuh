// wgmma for sm_90a: m64nNk16, f32 accumulators, both operands in shared memory, K-major.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <pipelink/descriptor.cuh>

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

/// One m64nNk16 step: acc = A x B^T + (accumulate ? acc : 0).
/// @threads a converged warpgroup
/// @ptx wgmma.mma_async.sync.aligned.m64nNk16.f32
template <int N, typename T>
struct Wgmma;

// Inline assembly cannot loop over operands: their numbers are written out, 32 at a time.
#define PIPELINK_D0                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PIPELINK_D32                                                                 \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PIPELINK_D64                                                                 \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define PIPELINK_D96                                                                             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define PIPELINK_F4(i) "+f"(acc[i]), "+f"(acc[i + 1]), "+f"(acc[i + 2]), "+f"(acc[i + 3])
#define PIPELINK_F16(i) PIPELINK_F4(i), PIPELINK_F4(i + 4), PIPELINK_F4(i + 8), PIPELINK_F4(i + 12)
#define PIPELINK_F32(i) PIPELINK_F16(i), PIPELINK_F16(i + 16)

// D: numbers of the accumulators, A, B and P: of the other operands, ...: the accumulators.
#define PIPELINK_WGMMA(N, T, TYPE, D, A, B, P, ...)                                               \
  template <>                                                                                     \
  struct Wgmma<N, T> {                                                                            \
    static __device__ __forceinline__ void step(float (&acc)[N / 2], uint64_t a, uint64_t b,      \
                                                int accumulate) {                                 \
      asm volatile("{.reg .pred p; setp.ne.b32 p, " P                                             \
                   ", 0;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" D "}, " A \
                   ", " B ", p, 1, 1, 0, 0;}"                                                     \
                   : __VA_ARGS__                                                                  \
                   : "l"(a), "l"(b), "r"(accumulate));                                            \
    }                                                                                             \
  };
#define PIPELINK_WGMMA_16BIT(N, ...)                    \
  PIPELINK_WGMMA(N, __nv_bfloat16, "bf16", __VA_ARGS__) \
  PIPELINK_WGMMA(N, __half, "f16", __VA_ARGS__)

PIPELINK_WGMMA_16BIT(64, PIPELINK_D0, "%32", "%33", "%34", PIPELINK_F32(0))
PIPELINK_WGMMA_16BIT(128, PIPELINK_D0 ", " PIPELINK_D32, "%64", "%65", "%66", PIPELINK_F32(0),
                     PIPELINK_F32(32))
PIPELINK_WGMMA_16BIT(192, PIPELINK_D0 ", " PIPELINK_D32 ", " PIPELINK_D64, "%96", "%97", "%98",
                     PIPELINK_F32(0), PIPELINK_F32(32), PIPELINK_F32(64))
PIPELINK_WGMMA_16BIT(256, PIPELINK_D0 ", " PIPELINK_D32 ", " PIPELINK_D64 ", " PIPELINK_D96, "%128",
                     "%129", "%130", PIPELINK_F32(0), PIPELINK_F32(32), PIPELINK_F32(64),
                     PIPELINK_F32(96))

#undef PIPELINK_WGMMA_16BIT
#undef PIPELINK_WGMMA
#undef PIPELINK_F32
#undef PIPELINK_F16
#undef PIPELINK_F4
#undef PIPELINK_D96
#undef PIPELINK_D64
#undef PIPELINK_D32
#undef PIPELINK_D0

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
