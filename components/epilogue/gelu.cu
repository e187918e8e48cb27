// gelu: acc = acc * Phi(acc), Phi the normal distribution function.
//
// Phi(x) = (1 + erf(x / sqrt 2)) / 2 with erf after Abramowitz and Stegun 7.1.26 (absolute error
// 1.5e-7, float's own resolution near 1): one reciprocal, one exponential and few registers, where
// erff would spill beside a full accumulator.
#include "gelu.contract.cuh"

namespace PL_COMPONENT {
namespace {

__device__ __forceinline__ float gelu(float x) {
  constexpr float kSqrtHalf = 0.70710678118654752f;
  const float z = fabsf(x) * kSqrtHalf;
  const float t = __fdividef(1.0f, fmaf(0.3275911f, z, 1.0f));
  float tail = fmaf(1.061405429f, t, -1.453152027f);
  tail = fmaf(tail, t, 1.421413741f);
  tail = fmaf(tail, t, -0.284496736f);
  tail = fmaf(tail, t, 0.254829592f);
  tail *= t * __expf(-z * z);  // 1 - erf(z)
  // x Phi(x) = max(x, 0) - |x| (1 - erf(z)) / 2 on both sides, without a branch.
  return fmaf(-0.5f * fabsf(x), tail, fmaxf(x, 0.0f));
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations&, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork&, uint32_t) {
#pragma unroll
  for (float& x : port.acc) x = PL_COMPONENT::gelu(x);
}
