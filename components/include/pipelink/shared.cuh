// Generic accesses to shared memory by shared-window address.
#pragma once

#include <cstdint>

namespace pipelink {

/// Loads 16 bytes (16-byte aligned).
/// @threads any
/// @ptx ld.shared.v4.b32
__device__ __forceinline__ uint4 load_shared_16(uint32_t address) {
  uint4 value;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(address)
               : "memory");
  return value;
}

/// Stores 16 bytes (16-byte aligned).
/// @threads any
/// @ptx st.shared.v4.b32
__device__ __forceinline__ void store_shared_16(uint32_t address, uint4 value) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(value.x),
               "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}

/// Loads one float.
/// @threads any
/// @ptx ld.shared.f32
__device__ __forceinline__ float load_shared_float(uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

/// Stores one float.
/// @threads any
/// @ptx st.shared.f32
__device__ __forceinline__ void store_shared_float(uint32_t address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}

/// Stores four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix
/// l / 8 (PTX ISA, stmatrix).
/// @threads a converged warp
/// @ptx stmatrix.sync.aligned.m8n8.x4.shared.b16
__device__ __forceinline__ void store_matrix_4(uint32_t address, uint32_t a, uint32_t b, uint32_t c,
                                               uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

/// Stores four 8x8 matrices of 16-bit elements transposed; lane l gives the address of column l % 8
/// of matrix l / 8 (PTX ISA, stmatrix).
/// @threads a converged warp
/// @ptx stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
__device__ __forceinline__ void store_transposed_4(uint32_t address, uint32_t a, uint32_t b,
                                                   uint32_t c, uint32_t d) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(a), "r"(b), "r"(c), "r"(d)
      : "memory");
}

/// The offset in bytes of 16-byte chunk `chunk` of row `row` in a tile of rows of RowBytes bytes, 32,
/// 64 or 128, under the swizzle of that span; the tile starts at a multiple of 8 rows.
template <uint32_t RowBytes>
__device__ __forceinline__ uint32_t swizzle(uint32_t row, uint32_t chunk) {
  static_assert(RowBytes == 32 || RowBytes == 64 || RowBytes == 128, "a swizzle span");
  // Of the address bits 4-6, those inside of a row are replaced by their sum without carry with
  // bits 7-9, which count 128 bytes.
  constexpr uint32_t kRows = 128 / RowBytes;
  return row * RowBytes + ((chunk ^ (row / kRows & (RowBytes / 16 - 1))) << 4);
}

}  // namespace pipelink
