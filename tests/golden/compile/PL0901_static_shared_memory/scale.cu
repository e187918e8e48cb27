// scale: acc *= factor.
#include "scale.contract.cuh"

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations& at, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  __shared__ float factors[128];
  factors[thread] = port.factor;
  __syncwarp();
  port.acc[0] *= factors[thread ^ 1];
}
