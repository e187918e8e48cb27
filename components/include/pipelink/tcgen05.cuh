// tcgen05.mma for sm_100a: M = 128, both operands in shared memory, K-major, f32 accumulators in
// tensor memory.  Compiled and audited, not yet run on hardware.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <pipelink/descriptor.cuh>

#include <cstdint>

namespace pipelink {

constexpr int kTensorRows = 128;  // lanes of tensor memory: rows of one accumulator

/// The code of an element type in an instruction descriptor.
template <typename T>
struct TensorType;
template <>
struct TensorType<__half> {
  static constexpr uint32_t kFormat = 0;
};
template <>
struct TensorType<__nv_bfloat16> {
  static constexpr uint32_t kFormat = 1;
};

/// Instruction descriptor of kind::f16 (PTX ISA, tcgen05 instruction descriptor): f32 accumulators,
/// A and B of type T, both K-major, N columns, 128 rows.
template <int N, typename T>
__device__ __forceinline__ constexpr uint32_t tcgen05_instruction() {
  static_assert(N % 16 == 0 && 16 <= N && N <= 256, "tcgen05.mma with M = 128");
  return 1u << 4 | TensorType<T>::kFormat << 7 | TensorType<T>::kFormat << 10 | (N / 8u) << 17 |
         (kTensorRows / 16u) << 24;
}

}  // namespace pipelink
