// rms_norm: y[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + eps) * weight, one warp a row.
//
//     x {rows [ROWS, D]} ──▶ rms_norm ──▶ y {rows [ROWS, D]}
//     weight [D] ───────────▶
//
// A row is read once into registers; its stage is released for the next copy before it is scaled.
#include <pipelink/rows.cuh>

#include "rms_norm.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kSteps = kD / (8 * 32);  // 16-byte accesses of a lane in one row
constexpr uint32_t kRowBytes = kD * sizeof(T);

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(compute)(const PL_COMPONENT::ComputeRelocations& at, PL_COMPONENT::ComputePorts& port,
                  const PL_COMPONENT::ComputeWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const uint32_t row = pipelink::uniform(thread / 32);
  const uint32_t lane = thread % 32;
  const bool mine = row < static_cast<uint32_t>(work.rows);
  uint4 values[kSteps];
  float sum = 0.0f;
  pl_ring_wait(at.x, port.x);
  if (mine) {
    const uint32_t stage = pipelink::stage_address(at.x, port.x);
    sum = pipelink::load_row<T, 32>(values, stage + X::kRows + row * kRowBytes, lane);
  }
  pl_fence_async();  // before the next copy overwrites x
  pl_ring_release(at.x, port.x);
  pl_ring_advance(at.x, port.x);
  const float scale = rsqrtf(pipelink::warp_sum(sum) / kD + port.eps);
  pl_ring_acquire(at.y, port.y);
  if (mine) {
    const uint32_t stage = pipelink::stage_address(at.y, port.y);
    pipelink::store_scaled_row<T, 32>(values, stage + Y::kRows + row * kRowBytes, port.weight,
                                      scale, lane);
  }
  pl_fence_async();  // before the store reads y
  pl_ring_commit(at.y, port.y);
  pl_ring_advance(at.y, port.y);
}
