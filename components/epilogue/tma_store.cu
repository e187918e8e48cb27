// tma_store: rounds the accumulator to T and stores it to C.
//
// Every warp works alone: it stages 16 rows x 64 columns at a time in one of its two halves of
// `staging` and stores them with a tensor copy; while that reads one half, the warp fills the
// other.  Elements outside C are dropped by the copy.
#include <pipelink/fragment.cuh>
#include <pipelink/shared.cuh>

#include "tma_store.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kColumns = 64;                               // one 128-byte swizzle span of T
constexpr uint32_t kHalfBytes = 16 * kColumns * sizeof(T);

/// Writes columns [64 c, 64 c + 64) of the warp's 16 rows to `half`.
__device__ __forceinline__ void stage_columns(const float (&acc)[kTN / 2], int c, uint32_t half,
                                              uint32_t lane) {
  const uint32_t row = lane & 15;
#pragma unroll
  for (int pair = 0; pair < kColumns / 16; ++pair) {
    const int j = c * (kColumns / 8) + 2 * pair;
    const uint32_t chunk = 2 * pair + (lane >> 4);
    pipelink::store_matrix_4(half + pipelink::swizzle_128(row, chunk),
                             pipelink::pack_pair<T>(acc[4 * j], acc[4 * j + 1]),
                             pipelink::pack_pair<T>(acc[4 * j + 2], acc[4 * j + 3]),
                             pipelink::pack_pair<T>(acc[4 * j + 4], acc[4 * j + 5]),
                             pipelink::pack_pair<T>(acc[4 * j + 6], acc[4 * j + 7]));
  }
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(store)(const PL_COMPONENT::StoreRelocations& at, PL_COMPONENT::StorePorts& port,
                const PL_COMPONENT::StoreWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const uint32_t warp = pipelink::uniform(thread / 32);
  const uint32_t staging = at.staging.address + warp * 2 * kHalfBytes;
  // With an odd number of pieces the last item's last store reads the half that comes first now.
  if constexpr (kTN / kColumns % 2) pl_store_wait(0);
#pragma unroll
  for (int c = 0; c < kTN / kColumns; ++c) {
    const uint32_t half = staging + (c & 1) * kHalfBytes;
    pl_store_wait(1);
    stage_columns(port.acc, c, half, thread % 32);
    pl_fence_async();
    pl_store_tile(port.C, half, work.n + c * kColumns, work.m + static_cast<int32_t>(warp * 16));
  }
}
