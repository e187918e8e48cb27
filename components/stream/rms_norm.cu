// rms_norm: y[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + eps) * weight, one warp a row.
//
//     x {rows [ROWS, D]} ──▶ rms_norm ──▶ y {rows [ROWS, D]}
//     weight [D] ───────────▶
//
// A row is read twice from shared memory: once for its squares, once to scale it.
#include <pipelink/rows.cuh>

#include "rms_norm.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kChunk = 16 / sizeof(T);           // elements of one 16-byte access
constexpr int kSteps = kD / (32 * kChunk);       // accesses of a lane in one row
constexpr uint32_t kRowBytes = kD * sizeof(T);

__device__ __forceinline__ void norm_row(uint32_t source, uint32_t target, const T* weight,
                                         float eps, uint32_t lane) {
  float sum = 0.0f;
#pragma unroll 8
  for (int step = 0; step < kSteps; ++step) {
    sum += pipelink::square_sum<T>(pipelink::load_shared_16(source + (step * 32 + lane) * 16));
  }
  const float scale = rsqrtf(pipelink::warp_sum(sum) / kD + eps);
#pragma unroll 4
  for (int step = 0; step < kSteps; ++step) {
    const uint32_t chunk = step * 32 + lane;
    const uint4 x = pipelink::load_shared_16(source + chunk * 16);
    const uint4 w = __ldg(reinterpret_cast<const uint4*>(weight) + chunk);
    pipelink::store_shared_16(target + chunk * 16, pipelink::scale_chunk<T>(x, w, scale));
  }
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(compute)(const PL_COMPONENT::ComputeRelocations& at, PL_COMPONENT::ComputePorts& port,
                  const PL_COMPONENT::ComputeWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const uint32_t row = pipelink::uniform(thread / 32);
  pl_ring_wait(at.x, port.x);
  pl_ring_acquire(at.y, port.y);
  if (row < static_cast<uint32_t>(work.rows)) {
    norm_row(pipelink::stage_address(at.x, port.x) + X::kRows + row * kRowBytes,
             pipelink::stage_address(at.y, port.y) + Y::kRows + row * kRowBytes, port.weight,
             port.eps, thread % 32);
  }
  pl_fence_async();  // before the store reads y, and before the next copy overwrites x
  pl_ring_release(at.x, port.x);
  pl_ring_commit(at.y, port.y);
  pl_ring_advance(at.x, port.x);
  pl_ring_advance(at.y, port.y);
}
