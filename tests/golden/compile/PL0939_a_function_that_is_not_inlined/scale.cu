// scale: acc *= factor, behind a call.
#include "scale.contract.cuh"

namespace PL_COMPONENT {
__device__ __noinline__ void prepare() { asm volatile("" ::: "memory"); }
}  // namespace PL_COMPONENT

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations& at, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  PL_COMPONENT::prepare();
#pragma unroll
  for (float& value : port.acc) value *= port.factor;
}
