// scale: acc *= factor.
#include "scale.contract.cuh"

namespace PL_COMPONENT {
__device__ __noinline__ float power(float base, int n) {
  return n <= 0 ? 1.0f : base * power(base, n - 1) + power(base, n - 2);
}
}  // namespace PL_COMPONENT

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations& at, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  port.acc[0] *= PL_COMPONENT::power(port.factor, work.n);
}
