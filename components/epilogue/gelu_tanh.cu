// gelu_tanh: acc = acc/2 * (1 + tanh(sqrt(2/pi) (acc + 0.044715 acc^3))), by the hardware tanh.
#include "gelu_tanh.contract.cuh"

namespace PL_COMPONENT {
namespace {

__device__ __forceinline__ float gelu_tanh(float x) {
  constexpr float kScale = 0.79788456080286536f;  // sqrt(2 / pi)
  const float inner = kScale * x * (1.0f + 0.044715f * x * x);
  float tanh;
  asm("tanh.approx.f32 %0, %1;" : "=f"(tanh) : "f"(inner));  // relative error 2^-11
  return 0.5f * x * (1.0f + tanh);
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations&, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork&, uint32_t) {
#pragma unroll
  for (float& x : port.acc) x = PL_COMPONENT::gelu_tanh(x);
}
