// Counters in global memory, at the scope that their contract names.
#pragma once

#include "operation.cuh"

namespace pipelink {
namespace runtime {

/// One arrival, after all accesses that this thread has observed (PTX ISA, red.release: the release
/// is cumulative, so it covers the accesses of other lanes before a __syncwarp).
__device__ __forceinline__ void arrive_counter(uint32_t* counter, uint32_t scope) {
  const uint64_t address = __cvta_generic_to_global(counter);
  switch (scope) {  // a link-time constant: one case is left
    case kCtaScope:
      asm volatile("red.release.cta.global.add.u32 [%0], 1;" ::"l"(address) : "memory");
      break;
    case kClusterScope:
      asm volatile("red.release.cluster.global.add.u32 [%0], 1;" ::"l"(address) : "memory");
      break;
    case kGpuScope:
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(address) : "memory");
      break;
    default:
      asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(address) : "memory");
      break;
  }
}

/// The count; what the counted arrivals released is visible afterwards.
__device__ __forceinline__ uint32_t read_counter(const uint32_t* counter, uint32_t scope) {
  const uint64_t address = __cvta_generic_to_global(counter);
  uint32_t value;
  switch (scope) {
    case kCtaScope:
      asm volatile("ld.acquire.cta.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
      break;
    case kClusterScope:
      asm volatile("ld.acquire.cluster.global.u32 %0, [%1];"
                   : "=r"(value)
                   : "l"(address)
                   : "memory");
      break;
    case kGpuScope:
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
      break;
    default:
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
      break;
  }
  return value;
}

}  // namespace runtime
}  // namespace pipelink
