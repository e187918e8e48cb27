// scale: acc *= factor.
#include "scale.contract.cuh"

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations& at, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#pragma unroll
  for (float& value : port.acc) value *= port.factor;
}
