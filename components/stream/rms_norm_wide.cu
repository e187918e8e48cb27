// rms_norm_wide: y[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + eps) * weight, all warps on one row.
//
// Every warp sums its part of the squares, writes the sum to `partial` and meets the others at
// `reduce`.  `partial` has two halves, used in turn: a warp that is already at the next row writes
// the half that no other warp still reads.
#include <pipelink/rows.cuh>

#include "rms_norm_wide.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kThreads = 32 * kWARPS;
constexpr int kSteps = kD / (8 * kThreads);  // 16-byte accesses of a thread in one row

/// The sum over the role, the same bits in every thread.
__device__ __forceinline__ float role_sum(const ComputeRelocations& at, const ComputePorts& port,
                                          float value, uint32_t thread) {
  // Parity of the item: it is stage + stages * (times that the cursor has returned to stage 0), and
  // the phase is the parity of that count.
  const uint32_t half = (port.x.stage + port.x.phase * at.x.stages) & 1;
  const uint32_t partial = at.partial.address + half * kWARPS * 4;
  value = pipelink::warp_sum(value);
  if (thread % 32 == 0) pipelink::store_shared_float(partial + thread / 32 * 4, value);
  pl_barrier_sync(at.reduce);
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWARPS; ++warp) {
    total += pipelink::load_shared_float(partial + warp * 4);
  }
  return total;
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(compute)(const PL_COMPONENT::ComputeRelocations& at, PL_COMPONENT::ComputePorts& port,
                  const PL_COMPONENT::ComputeWork&, uint32_t thread) {
  using namespace PL_COMPONENT;
  uint4 values[kSteps];
  pl_ring_wait(at.x, port.x);
  const uint32_t source = pipelink::stage_address(at.x, port.x) + X::kRows;
  const float sum = pipelink::load_row<T, kThreads>(values, source, thread);
  pl_fence_async();  // before the next copy overwrites x
  pl_ring_release(at.x, port.x);
  const float scale = rsqrtf(role_sum(at, port, sum, thread) / kD + port.eps);
  pl_ring_advance(at.x, port.x);
  pl_ring_acquire(at.y, port.y);
  const uint32_t target = pipelink::stage_address(at.y, port.y) + Y::kRows;
  pipelink::store_scaled_row<T, kThreads>(values, target, port.weight, scale, thread);
  pl_fence_async();  // before the store reads y
  pl_ring_commit(at.y, port.y);
  pl_ring_advance(at.y, port.y);
}
