// Descriptors of tcgen05.mma for sm_100a: M = 128, both operands in shared memory, K-major, f32
// accumulators.  Not run yet: no such device was at hand.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace pipelink {

constexpr int kTensorRows = 128;  // lanes of tensor memory: rows of one accumulator
constexpr int kTensorStepK = 16;  // k of one tcgen05.mma of 16-bit elements

/// Matrix descriptor of a K-major tile with 128-byte rows under the 128-byte swizzle: leading offset
/// unused, 1024 bytes between groups of eight rows (PTX ISA, tcgen05 shared memory descriptor:
/// bits 46-47 are 1, bits 61-63 are 2 for this swizzle).
__device__ __forceinline__ uint64_t tensor_descriptor(uint32_t address) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | static_cast<uint64_t>(1) << 16 |
         static_cast<uint64_t>(1024 >> 4) << 32 | static_cast<uint64_t>(1) << 46 |
         static_cast<uint64_t>(2) << 61;
}

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
__device__ __forceinline__ constexpr uint32_t tensor_instruction() {
  static_assert(N % 16 == 0 && 16 <= N && N <= 256, "tcgen05.mma with M = 128");
  return 1u << 4 | TensorType<T>::kFormat << 7 | TensorType<T>::kFormat << 10 | (N / 8u) << 17 |
         (kTensorRows / 16u) << 24;
}

}  // namespace pipelink
