// transposed_store: rounds the accumulator to T, transposes it and stores it to C: C[n, m] = acc[m, n].
//
// Every warp works alone: it stages P rows x 16 columns of C at a time in one of its two halves of
// `staging` and stores them with a tensor copy; while that reads one half, the warp fills the
// other.  The copy drops elements outside C.
#include <pipelink/fragment.cuh>

#include "transposed_store.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr uint32_t kHalfBytes = kP * 16 * sizeof(T);

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(store)(const PL_COMPONENT::StoreRelocations& at, PL_COMPONENT::StorePorts& port,
                const PL_COMPONENT::StoreWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const uint32_t warp = pipelink::uniform(thread / 32);
  const uint32_t staging = at.staging.address + warp * 2 * kHalfBytes;
  // If the number of pieces is odd, the last store of the previous tile still reads the half that
  // is written next.
  if constexpr (kTN / kP % 2) pl_store_wait(0);
#pragma unroll
  for (int c = 0; c < kTN / kP; ++c) {
    const uint32_t half = staging + (c & 1) * kHalfBytes;
    pl_store_wait(1);
    pipelink::stage_transposed<kP, T>(port.acc, c, half, thread % 32);
    pl_fence_async();
    pl_store_tile(port.C, half, work.m + static_cast<int32_t>(warp * 16), work.n + c * kP);
  }
}
