// Arithmetic on rows of 16-bit elements in shared memory, 16 bytes at a time.
#pragma once

#include <pipelink/fragment.cuh>
#include <pipelink/shared.cuh>

namespace pipelink {

/// Sum of the squares of eight packed elements.
template <typename T>
__device__ __forceinline__ float square_sum(uint4 chunk) {
  float sum = 0.0f;
#pragma unroll
  for (uint32_t pair : {chunk.x, chunk.y, chunk.z, chunk.w}) {
    const float2 value = unpack_pair<T>(pair);
    sum += value.x * value.x + value.y * value.y;
  }
  return sum;
}

/// (value * scale) * weight for two packed elements, rounded once.
template <typename T>
__device__ __forceinline__ uint32_t scale_pair(uint32_t pair, uint32_t weight, float scale) {
  const float2 value = unpack_pair<T>(pair);
  const float2 factor = unpack_pair<T>(weight);
  return pack_pair<T>(value.x * scale * factor.x, value.y * scale * factor.y);
}

/// `scale_pair` for eight packed elements.
template <typename T>
__device__ __forceinline__ uint4 scale_chunk(uint4 x, uint4 weight, float scale) {
  return make_uint4(scale_pair<T>(x.x, weight.x, scale), scale_pair<T>(x.y, weight.y, scale),
                    scale_pair<T>(x.z, weight.z, scale), scale_pair<T>(x.w, weight.w, scale));
}

/// The sum over the lanes of the warp, the same bits in every lane.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, lanes);
  }
  return value;
}

}  // namespace pipelink
