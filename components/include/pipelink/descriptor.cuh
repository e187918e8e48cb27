// Matrix descriptors of wgmma and tcgen05.mma: K-major tiles in shared memory, 128-byte rows under
// the 128-byte swizzle, 1024 bytes between groups of eight rows.
#pragma once

#include <cstdint>

namespace pipelink {

constexpr int kStepK = 16;  // k of one instruction, for 16-bit elements

/// What both forms share: address, leading offset (unused) and distance of row groups, in units of
/// 16 bytes.
__device__ __forceinline__ uint64_t descriptor_base(uint32_t address) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | static_cast<uint64_t>(1) << 16 |
         static_cast<uint64_t>(1024 >> 4) << 32;
}

/// Descriptor of wgmma (PTX ISA, matrix descriptor format: bits 62-63 are 1 for this swizzle).
__device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t address) {
  return descriptor_base(address) | static_cast<uint64_t>(1) << 62;
}

/// Descriptor of tcgen05.mma (PTX ISA, tcgen05 shared memory descriptor: bits 46-47 are 1, bits
/// 61-63 are 2 for this swizzle).
__device__ __forceinline__ uint64_t tcgen05_descriptor(uint32_t address) {
  return descriptor_base(address) | static_cast<uint64_t>(1) << 46 | static_cast<uint64_t>(2) << 61;
}

/// Descriptor of the `step`-th 16 columns of the same tile.
template <typename T>
__device__ __forceinline__ uint64_t k_step(uint64_t descriptor, int step) {
  constexpr int kStepBytes = kStepK * sizeof(T);
  return descriptor + step * (kStepBytes >> 4);
}

}  // namespace pipelink
