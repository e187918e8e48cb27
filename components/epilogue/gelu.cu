// gelu: acc = acc * Phi(acc), Phi the normal distribution function.
#include "gelu.contract.cuh"

namespace PL_COMPONENT {
namespace {

__device__ __forceinline__ float gelu(float x) {
  constexpr float kSqrtHalf = 0.70710678118654752f;
  return 0.5f * x * (1.0f + erff(x * kSqrtHalf));
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations&, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork&, uint32_t) {
#pragma unroll
  for (float& x : port.acc) x = PL_COMPONENT::gelu(x);
}
