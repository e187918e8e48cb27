// tensor_store: loads the accumulator from tensor memory, rounds it to T, stores it to C; sm_100a.
//
// Every warp works alone on the 32 rows whose lanes it can access: thread t of the warpgroup has
// row t.  It stages 32 rows x 64 columns at a time in one of its two halves of `staging` and stores
// them with a tensor copy; while that reads one half, the warp fills the other.
#include <pipelink/pairs.cuh>
#include <pipelink/shared.cuh>

#include "tensor_store.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kColumns = 64;  // one 128-byte swizzle span of T
constexpr uint32_t kHalfBytes = 32 * kColumns * sizeof(T);

/// Writes 32 columns of the thread's row, beginning at 16-byte chunk `first`.
__device__ __forceinline__ void stage_row(const float (&values)[32], uint32_t half, uint32_t row,
                                          uint32_t first) {
#pragma unroll
  for (int chunk = 0; chunk < 4; ++chunk) {
    pipelink::store_shared_16(half + pipelink::swizzle<128>(row, first + chunk),
                              pipelink::pack_chunk<T>(values + 8 * chunk));
  }
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(store)(const PL_COMPONENT::StoreRelocations& at, PL_COMPONENT::StorePorts& port,
                const PL_COMPONENT::StoreWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const uint32_t warp = pipelink::uniform(thread / 32);
  const uint32_t staging = at.staging.address + warp * 2 * kHalfBytes;
  pl_ring_wait(at.acc, port.acc);
  pl_tensor_fence_after();
#pragma unroll
  for (int c = 0; c < kTN / kColumns; ++c) {
    const uint32_t half = staging + (c & 1) * kHalfBytes;
    float low[32], high[32];
    pl_tensor_load_32(at.acc, port.acc, thread, c * kColumns, low);
    pl_tensor_load_32(at.acc, port.acc, thread, c * kColumns + 32, high);
    pl_tensor_await_load();
    pl_store_wait(1);
    stage_row(low, half, thread % 32, 0);
    stage_row(high, half, thread % 32, 4);
    pl_fence_async();
    pl_store_tile(port.C, half, work.n + c * kColumns, work.m + static_cast<int32_t>(warp * 32));
  }
  pl_tensor_fence_before();
  pl_ring_release(at.acc, port.acc);
  pl_ring_advance(at.acc, port.acc);
}
