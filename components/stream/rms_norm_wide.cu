// rms_norm_wide: y[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + eps) * weight, all warps on one row.
//
// Every warp sums its share of the squares, leaves the sum in `partial` and meets the others at
// `reduce`.  `partial` has two halves, used in turn: a warp that is already at the next row writes
// the half that nobody reads any more.
#include <pipelink/rows.cuh>

#include "rms_norm_wide.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kThreads = 32 * kWARPS;
constexpr int kSteps = kD / (8 * kThreads);  // 16-byte accesses of a thread in one row

/// The sum over the role; every thread gets the same bits.
__device__ __forceinline__ float role_sum(const ComputeRelocations& at, const ComputePorts& port,
                                          float value, uint32_t thread) {
  // Parity of the item: its number is round * stages + stage, the phase is the round's parity.
  const uint32_t half = (port.x.stage + port.x.phase * at.x.stages) & 1;
  const uint32_t partial = at.partial.address + half * kWARPS * 4;
  value = pipelink::warp_sum(value);
  if (thread % 32 == 0) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(partial + thread / 32 * 4), "f"(value)
                 : "memory");
  }
  pl_barrier_sync(at.reduce);
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWARPS; ++warp) {
    float part;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(part) : "r"(partial + warp * 4) : "memory");
    total += part;
  }
  return total;
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(compute)(const PL_COMPONENT::ComputeRelocations& at, PL_COMPONENT::ComputePorts& port,
                  const PL_COMPONENT::ComputeWork&, uint32_t thread) {
  using namespace PL_COMPONENT;
  uint4 values[kSteps];
  float sum = 0.0f;
  pl_ring_wait(at.x, port.x);
  const uint32_t source = pipelink::stage_address(at.x, port.x) + X::kRows;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    values[step] = pipelink::load_shared_16(source + (step * kThreads + thread) * 16);
    sum += pipelink::square_sum<T>(values[step]);
  }
  pl_fence_async();  // before the next copy overwrites x
  pl_ring_release(at.x, port.x);
  const float scale = rsqrtf(role_sum(at, port, sum, thread) / kD + port.eps);
  pl_ring_advance(at.x, port.x);
  pl_ring_acquire(at.y, port.y);
  const uint32_t target = pipelink::stage_address(at.y, port.y) + Y::kRows;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const uint32_t chunk = step * kThreads + thread;
    const uint4 weight = __ldg(reinterpret_cast<const uint4*>(port.weight) + chunk);
    pipelink::store_shared_16(target + chunk * 16,
                              pipelink::scale_chunk<T>(values[step], weight, scale));
  }
  pl_fence_async();  // before the store reads y
  pl_ring_commit(at.y, port.y);
  pl_ring_advance(at.y, port.y);
}
