// scale: acc *= factor.
#include "scale.contract.cuh"

extern "C" __device__ void pl_fence_asynch();

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations& at, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  pl_fence_asynch();
#pragma unroll
  for (float& value : port.acc) value *= port.factor;
}
