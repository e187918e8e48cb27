// halve: y[r, :] = x[r, :] / 2, one warp a row.
#include <pipelink/fragment.cuh>
#include <pipelink/shared.cuh>

#include "halve.contract.cuh"

namespace PL_COMPONENT {
namespace {

__device__ __forceinline__ uint32_t halve_pair(uint32_t pair) {
  const float2 x = pipelink::unpack_pair<T>(pair);
  return pipelink::pack_pair<T>(0.5f * x.x, 0.5f * x.y);
}

__device__ __forceinline__ void halve_row(uint32_t x_row, uint32_t y_row, uint32_t lane) {
#pragma unroll 4
  for (int step = 0; step < kD / (32 * 8); ++step) {
    const uint32_t at = (step * 32 + lane) * 16;
    const uint4 x = pipelink::load_shared_16(x_row + at);
    pipelink::store_shared_16(
        y_row + at, make_uint4(halve_pair(x.x), halve_pair(x.y), halve_pair(x.z), halve_pair(x.w)));
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
    halve_row(pipelink::stage_address(at.x, port.x) + X::kRows + row * kD * sizeof(T),
              pipelink::stage_address(at.y, port.y) + Y::kRows + row * kD * sizeof(T), thread % 32);
  }
  pl_fence_async();  // before the store reads y, and before the next copy overwrites x
  pl_ring_release(at.x, port.x);
  pl_ring_commit(at.y, port.y);
  pl_ring_advance(at.x, port.x);
  pl_ring_advance(at.y, port.y);
}
