// tma_store: rounds the accumulator to T and stores it to C.
//
// Every warp works alone: it stages 16 rows x W columns at a time in one of its two halves of
// `staging` and stores them with a tensor copy; while that reads one half, the warp fills the
// other.  The copy drops elements outside C.
#include <pipelink/fragment.cuh>

#include "tma_store.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr uint32_t kHalfBytes = 16 * kW * sizeof(T);

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(store)(const PL_COMPONENT::StoreRelocations& at, PL_COMPONENT::StorePorts& port,
                const PL_COMPONENT::StoreWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const uint32_t warp = pipelink::uniform(thread / 32);
  const uint32_t staging = at.staging.address + warp * 2 * kHalfBytes;
  // If the number of column pieces is odd, the last store of the previous tile still reads the half
  // that is written next.
  if constexpr (kTN / kW % 2) pl_store_wait(0);
#pragma unroll
  for (int c = 0; c < kTN / kW; ++c) {
    const uint32_t half = staging + (c & 1) * kHalfBytes;
    pl_store_wait(1);
    pipelink::stage_columns<kW, T>(port.acc, c, half, thread % 32);
    pl_fence_async();
    pl_store_tile(port.C, half, work.n + c * kW, work.m + static_cast<int32_t>(warp * 16));
  }
}
