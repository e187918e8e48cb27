// silu_mul: up = silu(gate) * up, silu(x) = x / (1 + exp(-x)).
#include "silu_mul.contract.cuh"

namespace PL_COMPONENT {
namespace {

__device__ __forceinline__ float silu(float x) {
  // 1 / (1 + inf) = 0: large negative x needs no special case.
  return __fdividef(x, 1.0f + __expf(-x));
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations&, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork&, uint32_t) {
  using namespace PL_COMPONENT;
#pragma unroll
  for (int i = 0; i < kTN / 2; ++i) port.up[i] *= silu(port.gate[i]);
}
