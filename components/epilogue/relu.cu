// relu: acc = max(acc, 0); NaN stays NaN.
#include "relu.contract.cuh"

namespace PL_COMPONENT {
namespace {

__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations&, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork&, uint32_t) {
#pragma unroll
  for (float& x : port.acc) x = PL_COMPONENT::relu(x);
}
