// The accumulator fragment of wgmma m64nN, seen from one thread of a role (thread counts from the
// first thread of the role; 128 threads own 64 rows).  See pipelink/wgmma.cuh for the picture.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace pipelink {

/// Row of acc[4 j] and acc[4 j + 1]; acc[4 j + 2] and acc[4 j + 3] are eight rows below.
__device__ __forceinline__ int fragment_row(uint32_t thread) {
  return static_cast<int>(thread / 32 * 16 + thread % 32 / 4);
}

/// Column of acc[0]; acc[4 j] is 8 j columns to the right.
__device__ __forceinline__ int fragment_column(uint32_t thread) {
  return static_cast<int>(thread % 4 * 2);
}

__device__ __forceinline__ float2 load_pair(const __nv_bfloat16* source) {
  return __bfloat1622float2(__ldg(reinterpret_cast<const __nv_bfloat162*>(source)));
}

__device__ __forceinline__ float2 load_pair(const __half* source) {
  return __half22float2(__ldg(reinterpret_cast<const __half2*>(source)));
}

__device__ __forceinline__ float2 load_pair(const float* source) {
  return __ldg(reinterpret_cast<const float2*>(source));
}

/// Two floats rounded to nearest even and packed, the first in the low half.
template <typename T>
__device__ __forceinline__ uint32_t pack_pair(float low, float high);

template <>
__device__ __forceinline__ uint32_t pack_pair<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 packed = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&packed);
}

template <>
__device__ __forceinline__ uint32_t pack_pair<__half>(float low, float high) {
  const __half2 packed = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&packed);
}

/// The two values of a packed pair.
template <typename T>
__device__ __forceinline__ float2 unpack_pair(uint32_t pair);

template <>
__device__ __forceinline__ float2 unpack_pair<__nv_bfloat16>(uint32_t pair) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
}

template <>
__device__ __forceinline__ float2 unpack_pair<__half>(uint32_t pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

}  // namespace pipelink
