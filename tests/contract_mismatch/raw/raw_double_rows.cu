// raw_double_rows: a consumer and producer that bypasses the runtime.
//
// All lanes wait; one thread of the role releases x, one lane of each warp commits y.
#include <pipelink/shared.cuh>

#include "raw.cuh"
#include "raw_double_rows.contract.cuh"

PL_ENTRY(compute)(const PL_COMPONENT::ComputeRelocations& at, PL_COMPONENT::ComputePorts& port,
                  const PL_COMPONENT::ComputeWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  constexpr int kSteps = kD / 128;
  const uint32_t row = thread / 32, lane = thread % 32;
  const bool mine = row < static_cast<uint32_t>(work.rows);
  uint4 piece[kSteps];
  raw::wait(raw::full(at.x, port.x.stage), port.x.phase);
  const uint32_t from = at.x.data + port.x.stage * at.x.stage_bytes + X::kRows + row * kD * 4;
  if (mine) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      piece[step] = pipelink::load_shared_16(from + (step * 32 + lane) * 16);
  }
  raw::meet(at.all.id, at.all.threads);
  raw::fence();
  if (thread == 0) raw::arrive_through_cluster(raw::empty(at.x, port.x.stage));
  raw::next(at.x, port.x);
  while (!raw::test(raw::empty(at.y, port.y.stage), port.y.phase ^ 1)) {
  }
  const uint32_t to = at.y.data + port.y.stage * at.y.stage_bytes + Y::kRows + row * kD * 4;
  if (mine) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint4 twice = piece[step];
      twice.x = __float_as_uint(2 * __uint_as_float(twice.x));
      twice.y = __float_as_uint(2 * __uint_as_float(twice.y));
      twice.z = __float_as_uint(2 * __uint_as_float(twice.z));
      twice.w = __float_as_uint(2 * __uint_as_float(twice.w));
      pipelink::store_shared_16(to + (step * 32 + lane) * 16, twice);
    }
  }
  raw::fence();
  __syncwarp();
  if (raw::elected()) raw::arrive(raw::full(at.y, port.y.stage));
  raw::next(at.y, port.y);
}
