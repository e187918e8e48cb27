// scale: acc *= factor.
#include "scale.contract.cuh"

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations& at, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
#pragma unroll
  for (int i = 0; i < kTM_ * kTN / 256; ++i) port.acc[i] *= port.faktor;
}
