// scale: acc *= factor.
#include "scale.contract.cuh"

namespace PL_COMPONENT {
__device__ int calls = 1;
}

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations& at, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  if (thread == 0) atomicAdd(&PL_COMPONENT::calls, 1);
#pragma unroll
  for (float& value : port.acc) value *= port.factor;
}
