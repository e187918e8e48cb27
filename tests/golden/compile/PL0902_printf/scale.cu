// scale: acc *= factor.
#include <cstdio>
#include "scale.contract.cuh"

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations& at, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  if (thread == 0) printf("factor %f\n", port.factor);
#pragma unroll
  for (float& value : port.acc) value *= port.factor;
}
