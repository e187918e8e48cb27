// Rows of 16-bit elements, 16 bytes at a time: chunk i of a row belongs to thread i % Threads.
#pragma once

#include <pipelink/pairs.cuh>
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

/// Loads the thread's chunks of a row from shared memory; returns the sum of their squares.
/// @threads any; `thread` is below Threads
/// @ptx ld.shared.v4.b32
template <typename T, int Threads, int Steps>
__device__ __forceinline__ float load_row(uint4 (&row)[Steps], uint32_t source, uint32_t thread) {
  float sum = 0.0f;
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    row[step] = load_shared_16(source + (step * Threads + thread) * 16);
    sum += square_sum<T>(row[step]);
  }
  return sum;
}

/// Stores the thread's chunks of a row, times `scale` and the weights in global memory, to shared
/// memory.
/// @threads any; `thread` is below Threads
/// @ptx ld.global.nc.v4 and st.shared.v4.b32
template <typename T, int Threads, int Steps>
__device__ __forceinline__ void store_scaled_row(const uint4 (&row)[Steps], uint32_t target,
                                                 const T* weight, float scale, uint32_t thread) {
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    const uint32_t chunk = step * Threads + thread;
    const uint4 factors = __ldg(reinterpret_cast<const uint4*>(weight) + chunk);
    store_shared_16(target + chunk * 16, scale_chunk<T>(row[step], factors, scale));
  }
}

/// The sum over the lanes of the warp, the same bits in every lane.
/// @threads a converged warp
/// @ptx shfl.sync.bfly
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, lanes);
  }
  return value;
}

}  // namespace pipelink
