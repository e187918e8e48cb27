// scaled_add: y[r, :] = x[r, :] + alpha * z[r, :], one warp a row.
#include <pipelink/pairs.cuh>
#include <pipelink/shared.cuh>

#include "scaled_add.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kSteps = kD / (32 * 8);  // a lane handles eight elements at a time

__device__ __forceinline__ uint32_t add_pair(uint32_t pair, uint32_t low, uint32_t high,
                                             float alpha) {
  const float2 x = pipelink::unpack_pair<T>(pair);
  return pipelink::pack_pair<T>(fmaf(alpha, __uint_as_float(low), x.x),
                                fmaf(alpha, __uint_as_float(high), x.y));
}

__device__ __forceinline__ void add_row(uint32_t x_row, uint32_t z_row, uint32_t y_row, float alpha,
                                        uint32_t lane) {
#pragma unroll 4
  for (int step = 0; step < kSteps; ++step) {
    const uint32_t chunk = step * 32 + lane;
    const uint4 x = pipelink::load_shared_16(x_row + chunk * 16);
    const uint4 z0 = pipelink::load_shared_16(z_row + chunk * 32);
    const uint4 z1 = pipelink::load_shared_16(z_row + chunk * 32 + 16);
    pipelink::store_shared_16(
        y_row + chunk * 16,
        make_uint4(add_pair(x.x, z0.x, z0.y, alpha), add_pair(x.y, z0.z, z0.w, alpha),
                   add_pair(x.z, z1.x, z1.y, alpha), add_pair(x.w, z1.z, z1.w, alpha)));
  }
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(compute)(const PL_COMPONENT::ComputeRelocations& at, PL_COMPONENT::ComputePorts& port,
                  const PL_COMPONENT::ComputeWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const uint32_t row = pipelink::uniform(thread / 32);
  pl_ring_wait(at.x, port.x);
  pl_ring_wait(at.z, port.z);
  pl_ring_acquire(at.y, port.y);
  if (row < static_cast<uint32_t>(work.rows)) {
    add_row(pipelink::stage_address(at.x, port.x) + X::kRows + row * kD * sizeof(T),
            pipelink::stage_address(at.z, port.z) + Z::kRows + row * kD * 4,
            pipelink::stage_address(at.y, port.y) + Y::kRows + row * kD * sizeof(T), port.alpha,
            thread % 32);
  }
  pl_fence_async();  // before the store reads y, and before the next copies overwrite x and z
  pl_ring_release(at.x, port.x);
  pl_ring_release(at.z, port.z);
  pl_ring_commit(at.y, port.y);
  pl_ring_advance(at.x, port.x);
  pl_ring_advance(at.z, port.z);
  pl_ring_advance(at.y, port.y);
}
