// wgmma for sm_90a: m64nNk16, f32 accumulators, both operands in shared memory, K-major.
//
// Instruction text per N is written out: an inline assembly template cannot loop over operands.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace pipelink {

/// The accumulators of one warpgroup: thread t of 128 holds, for j = 0 .. N/8 - 1,
/// (row, col), (row, col + 1), (row + 8, col), (row + 8, col + 1) at acc[4 j .. 4 j + 3], where
/// row = 16 (t / 32) + (t % 32) / 4 and col = 8 j + 2 (t % 4)   (PTX ISA, wgmma register fragment).
template <int N>
using Accumulator = float[N / 2];

/// Matrix descriptor of a K-major tile with 128-byte rows under the 128-byte swizzle: leading
/// offset unused, 1024 bytes between groups of eight rows (PTX ISA, matrix descriptor format).
__device__ __forceinline__ uint64_t matrix_descriptor(uint32_t address) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | static_cast<uint64_t>(1) << 16 |
         static_cast<uint64_t>(1024 >> 4) << 32 | static_cast<uint64_t>(1) << 62;
}

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `Pending` groups of this warpgroup are in flight.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// Keeps reads of the accumulators behind the wait above: to the compiler they are values of the
/// wgmma statement, which it could read as soon as that is issued (ptxas then serialises: C7514).
template <int Registers>
__device__ __forceinline__ void wgmma_settle(float (&acc)[Registers]) {
#pragma unroll
  for (int i = 0; i < Registers; ++i) asm volatile("" : "+f"(acc[i])::"memory");
}

/// One m64nNk16 step: acc = A x B + (accumulate ? acc : 0).
template <int N, typename T>
struct Wgmma;

#define PIPELINK_F4(i) "+f"(acc[i]), "+f"(acc[i + 1]), "+f"(acc[i + 2]), "+f"(acc[i + 3])
#define PIPELINK_F16(i) PIPELINK_F4(i), PIPELINK_F4(i + 4), PIPELINK_F4(i + 8), PIPELINK_F4(i + 12)
#define PIPELINK_F32(i) PIPELINK_F16(i), PIPELINK_F16(i + 16)

template <>
struct Wgmma<64, __nv_bfloat16> {
  static __device__ __forceinline__ void step(float (&acc)[32], uint64_t a, uint64_t b,
                                              int accumulate) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, p, 1, 1, 0, 0;}"
      : PIPELINK_F32(0)
      : "l"(a), "l"(b), "r"(accumulate));
  }
};

template <>
struct Wgmma<64, __half> {
  static __device__ __forceinline__ void step(float (&acc)[32], uint64_t a, uint64_t b,
                                              int accumulate) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, p, 1, 1, 0, 0;}"
      : PIPELINK_F32(0)
      : "l"(a), "l"(b), "r"(accumulate));
  }
};

template <>
struct Wgmma<128, __nv_bfloat16> {
  static __device__ __forceinline__ void step(float (&acc)[64], uint64_t a, uint64_t b,
                                              int accumulate) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
      "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63"
      "}, %64, %65, p, 1, 1, 0, 0;}"
      : PIPELINK_F32(0), PIPELINK_F32(32)
      : "l"(a), "l"(b), "r"(accumulate));
  }
};

template <>
struct Wgmma<128, __half> {
  static __device__ __forceinline__ void step(float (&acc)[64], uint64_t a, uint64_t b,
                                              int accumulate) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
      "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63"
      "}, %64, %65, p, 1, 1, 0, 0;}"
      : PIPELINK_F32(0), PIPELINK_F32(32)
      : "l"(a), "l"(b), "r"(accumulate));
  }
};

template <>
struct Wgmma<192, __nv_bfloat16> {
  static __device__ __forceinline__ void step(float (&acc)[96], uint64_t a, uint64_t b,
                                              int accumulate) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
      "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, "
      "%77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "
      "%92, %93, %94, %95"
      "}, %96, %97, p, 1, 1, 0, 0;}"
      : PIPELINK_F32(0), PIPELINK_F32(32), PIPELINK_F32(64)
      : "l"(a), "l"(b), "r"(accumulate));
  }
};

template <>
struct Wgmma<192, __half> {
  static __device__ __forceinline__ void step(float (&acc)[96], uint64_t a, uint64_t b,
                                              int accumulate) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
      "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, "
      "%77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "
      "%92, %93, %94, %95"
      "}, %96, %97, p, 1, 1, 0, 0;}"
      : PIPELINK_F32(0), PIPELINK_F32(32), PIPELINK_F32(64)
      : "l"(a), "l"(b), "r"(accumulate));
  }
};

template <>
struct Wgmma<256, __nv_bfloat16> {
  static __device__ __forceinline__ void step(float (&acc)[128], uint64_t a, uint64_t b,
                                              int accumulate) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
      "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, "
      "%77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "
      "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, "
      "%106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, "
      "%119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;}"
      : PIPELINK_F32(0), PIPELINK_F32(32), PIPELINK_F32(64), PIPELINK_F32(96)
      : "l"(a), "l"(b), "r"(accumulate));
  }
};

template <>
struct Wgmma<256, __half> {
  static __device__ __forceinline__ void step(float (&acc)[128], uint64_t a, uint64_t b,
                                              int accumulate) {
    asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
      "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, "
      "%77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "
      "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, "
      "%106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, "
      "%119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;}"
      : PIPELINK_F32(0), PIPELINK_F32(32), PIPELINK_F32(64), PIPELINK_F32(96)
      : "l"(a), "l"(b), "r"(accumulate));
  }
};

#undef PIPELINK_F4
#undef PIPELINK_F16
#undef PIPELINK_F32

}  // namespace pipelink
