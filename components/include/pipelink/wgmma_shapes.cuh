// The instructions wgmma.mma_async of every width: m64nNk16, N = 8, 16, .. 256.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace pipelink {

/// One m64nNk16 step: acc = A x B^T + (accumulate ? acc : 0).
/// @threads a converged warpgroup
/// @ptx wgmma.mma_async.sync.aligned.m64nNk16.f32
template <int N, typename T>
struct Wgmma;

// Inline assembly cannot loop over operands: they are listed for each width, 8 columns (4 registers
// of a thread) at a time, each list continuing the one before it.
#define PIPELINK_F4(i) "+f"(acc[i]), "+f"(acc[i + 1]), "+f"(acc[i + 2]), "+f"(acc[i + 3])
#define PIPELINK_D8 "%0, %1, %2, %3"
#define PIPELINK_D16 PIPELINK_D8 ", %4, %5, %6, %7"
#define PIPELINK_D24 PIPELINK_D16 ", %8, %9, %10, %11"
#define PIPELINK_D32 PIPELINK_D24 ", %12, %13, %14, %15"
#define PIPELINK_D40 PIPELINK_D32 ", %16, %17, %18, %19"
#define PIPELINK_D48 PIPELINK_D40 ", %20, %21, %22, %23"
#define PIPELINK_D56 PIPELINK_D48 ", %24, %25, %26, %27"
#define PIPELINK_D64 PIPELINK_D56 ", %28, %29, %30, %31"
#define PIPELINK_D72 PIPELINK_D64 ", %32, %33, %34, %35"
#define PIPELINK_D80 PIPELINK_D72 ", %36, %37, %38, %39"
#define PIPELINK_D88 PIPELINK_D80 ", %40, %41, %42, %43"
#define PIPELINK_D96 PIPELINK_D88 ", %44, %45, %46, %47"
#define PIPELINK_D104 PIPELINK_D96 ", %48, %49, %50, %51"
#define PIPELINK_D112 PIPELINK_D104 ", %52, %53, %54, %55"
#define PIPELINK_D120 PIPELINK_D112 ", %56, %57, %58, %59"
#define PIPELINK_D128 PIPELINK_D120 ", %60, %61, %62, %63"
#define PIPELINK_D136 PIPELINK_D128 ", %64, %65, %66, %67"
#define PIPELINK_D144 PIPELINK_D136 ", %68, %69, %70, %71"
#define PIPELINK_D152 PIPELINK_D144 ", %72, %73, %74, %75"
#define PIPELINK_D160 PIPELINK_D152 ", %76, %77, %78, %79"
#define PIPELINK_D168 PIPELINK_D160 ", %80, %81, %82, %83"
#define PIPELINK_D176 PIPELINK_D168 ", %84, %85, %86, %87"
#define PIPELINK_D184 PIPELINK_D176 ", %88, %89, %90, %91"
#define PIPELINK_D192 PIPELINK_D184 ", %92, %93, %94, %95"
#define PIPELINK_D200 PIPELINK_D192 ", %96, %97, %98, %99"
#define PIPELINK_D208 PIPELINK_D200 ", %100, %101, %102, %103"
#define PIPELINK_D216 PIPELINK_D208 ", %104, %105, %106, %107"
#define PIPELINK_D224 PIPELINK_D216 ", %108, %109, %110, %111"
#define PIPELINK_D232 PIPELINK_D224 ", %112, %113, %114, %115"
#define PIPELINK_D240 PIPELINK_D232 ", %116, %117, %118, %119"
#define PIPELINK_D248 PIPELINK_D240 ", %120, %121, %122, %123"
#define PIPELINK_D256 PIPELINK_D248 ", %124, %125, %126, %127"
#define PIPELINK_F8 PIPELINK_F4(0)
#define PIPELINK_F16 PIPELINK_F8, PIPELINK_F4(4)
#define PIPELINK_F24 PIPELINK_F16, PIPELINK_F4(8)
#define PIPELINK_F32 PIPELINK_F24, PIPELINK_F4(12)
#define PIPELINK_F40 PIPELINK_F32, PIPELINK_F4(16)
#define PIPELINK_F48 PIPELINK_F40, PIPELINK_F4(20)
#define PIPELINK_F56 PIPELINK_F48, PIPELINK_F4(24)
#define PIPELINK_F64 PIPELINK_F56, PIPELINK_F4(28)
#define PIPELINK_F72 PIPELINK_F64, PIPELINK_F4(32)
#define PIPELINK_F80 PIPELINK_F72, PIPELINK_F4(36)
#define PIPELINK_F88 PIPELINK_F80, PIPELINK_F4(40)
#define PIPELINK_F96 PIPELINK_F88, PIPELINK_F4(44)
#define PIPELINK_F104 PIPELINK_F96, PIPELINK_F4(48)
#define PIPELINK_F112 PIPELINK_F104, PIPELINK_F4(52)
#define PIPELINK_F120 PIPELINK_F112, PIPELINK_F4(56)
#define PIPELINK_F128 PIPELINK_F120, PIPELINK_F4(60)
#define PIPELINK_F136 PIPELINK_F128, PIPELINK_F4(64)
#define PIPELINK_F144 PIPELINK_F136, PIPELINK_F4(68)
#define PIPELINK_F152 PIPELINK_F144, PIPELINK_F4(72)
#define PIPELINK_F160 PIPELINK_F152, PIPELINK_F4(76)
#define PIPELINK_F168 PIPELINK_F160, PIPELINK_F4(80)
#define PIPELINK_F176 PIPELINK_F168, PIPELINK_F4(84)
#define PIPELINK_F184 PIPELINK_F176, PIPELINK_F4(88)
#define PIPELINK_F192 PIPELINK_F184, PIPELINK_F4(92)
#define PIPELINK_F200 PIPELINK_F192, PIPELINK_F4(96)
#define PIPELINK_F208 PIPELINK_F200, PIPELINK_F4(100)
#define PIPELINK_F216 PIPELINK_F208, PIPELINK_F4(104)
#define PIPELINK_F224 PIPELINK_F216, PIPELINK_F4(108)
#define PIPELINK_F232 PIPELINK_F224, PIPELINK_F4(112)
#define PIPELINK_F240 PIPELINK_F232, PIPELINK_F4(116)
#define PIPELINK_F248 PIPELINK_F240, PIPELINK_F4(120)
#define PIPELINK_F256 PIPELINK_F248, PIPELINK_F4(124)

// A, B, P: the numbers of the operands after the N / 2 accumulators.
#define PIPELINK_WGMMA(N, T, TYPE, A, B, P)                                                  \
  template <>                                                                                \
  struct Wgmma<N, T> {                                                                       \
    static __device__ __forceinline__ void step(float (&acc)[N / 2], uint64_t a, uint64_t b, \
                                                int accumulate) {                            \
      asm volatile("{.reg .pred p; setp.ne.b32 p, %" #P                                      \
                   ", 0;\n"                                                                  \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE           \
                   " {" PIPELINK_D##N "}, %" #A ", %" #B ", p, 1, 1, 0, 0;}"                 \
                   : PIPELINK_F##N                                                           \
                   : "l"(a), "l"(b), "r"(accumulate));                                       \
    }                                                                                        \
  };
#define PIPELINK_WGMMA_16BIT(N, ...)                    \
  PIPELINK_WGMMA(N, __nv_bfloat16, "bf16", __VA_ARGS__) \
  PIPELINK_WGMMA(N, __half, "f16", __VA_ARGS__)

PIPELINK_WGMMA_16BIT(8, 4, 5, 6)
PIPELINK_WGMMA_16BIT(16, 8, 9, 10)
PIPELINK_WGMMA_16BIT(24, 12, 13, 14)
PIPELINK_WGMMA_16BIT(32, 16, 17, 18)
PIPELINK_WGMMA_16BIT(40, 20, 21, 22)
PIPELINK_WGMMA_16BIT(48, 24, 25, 26)
PIPELINK_WGMMA_16BIT(56, 28, 29, 30)
PIPELINK_WGMMA_16BIT(64, 32, 33, 34)
PIPELINK_WGMMA_16BIT(72, 36, 37, 38)
PIPELINK_WGMMA_16BIT(80, 40, 41, 42)
PIPELINK_WGMMA_16BIT(88, 44, 45, 46)
PIPELINK_WGMMA_16BIT(96, 48, 49, 50)
PIPELINK_WGMMA_16BIT(104, 52, 53, 54)
PIPELINK_WGMMA_16BIT(112, 56, 57, 58)
PIPELINK_WGMMA_16BIT(120, 60, 61, 62)
PIPELINK_WGMMA_16BIT(128, 64, 65, 66)
PIPELINK_WGMMA_16BIT(136, 68, 69, 70)
PIPELINK_WGMMA_16BIT(144, 72, 73, 74)
PIPELINK_WGMMA_16BIT(152, 76, 77, 78)
PIPELINK_WGMMA_16BIT(160, 80, 81, 82)
PIPELINK_WGMMA_16BIT(168, 84, 85, 86)
PIPELINK_WGMMA_16BIT(176, 88, 89, 90)
PIPELINK_WGMMA_16BIT(184, 92, 93, 94)
PIPELINK_WGMMA_16BIT(192, 96, 97, 98)
PIPELINK_WGMMA_16BIT(200, 100, 101, 102)
PIPELINK_WGMMA_16BIT(208, 104, 105, 106)
PIPELINK_WGMMA_16BIT(216, 108, 109, 110)
PIPELINK_WGMMA_16BIT(224, 112, 113, 114)
PIPELINK_WGMMA_16BIT(232, 116, 117, 118)
PIPELINK_WGMMA_16BIT(240, 120, 121, 122)
PIPELINK_WGMMA_16BIT(248, 124, 125, 126)
PIPELINK_WGMMA_16BIT(256, 128, 129, 130)

#undef PIPELINK_WGMMA_16BIT
#undef PIPELINK_WGMMA

}  // namespace pipelink
