// 16-bit elements as floats: pairs in one register, and chunks of eight in 16 bytes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace pipelink {

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

/// Eight floats rounded to nearest even and packed in order.
template <typename T>
__device__ __forceinline__ uint4 pack_chunk(const float* values) {
  return make_uint4(pack_pair<T>(values[0], values[1]), pack_pair<T>(values[2], values[3]),
                    pack_pair<T>(values[4], values[5]), pack_pair<T>(values[6], values[7]));
}

/// Two neighboring elements of global memory that the kernel does not write.
/// @ptx ld.global.nc
__device__ __forceinline__ float2 load_pair(const __nv_bfloat16* source) {
  return __bfloat1622float2(__ldg(reinterpret_cast<const __nv_bfloat162*>(source)));
}

__device__ __forceinline__ float2 load_pair(const __half* source) {
  return __half22float2(__ldg(reinterpret_cast<const __half2*>(source)));
}

__device__ __forceinline__ float2 load_pair(const float* source) {
  return __ldg(reinterpret_cast<const float2*>(source));
}

/// Stores two neighboring elements to global memory, rounded to nearest even.
/// @ptx st.global.b32
template <typename T>
__device__ __forceinline__ void store_pair(T* target, float2 value) {
  *reinterpret_cast<uint32_t*>(target) = pack_pair<T>(value.x, value.y);
}

}  // namespace pipelink
