// split_k_store: the accumulators of all parts of K, added up in the order of the parts.
//
// A part is kept as its threads hold it: 16-byte slot i of thread t holds acc[4 i .. 4 i + 3], and
// neighbouring threads lie side by side.  Share s of a tile is slots [s TN / 8 / PARTS, ...): columns
// that 2 PARTS - 1 other items have nothing to do with.
#include <pipelink/fragment.cuh>

#include "split_k_store.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kSlots = kTN / 8;            // of a thread
constexpr int kShare = kSlots / kPARTS;    // slots that one item adds up
constexpr int kThreads = kTM / 64 * 128;
constexpr int64_t kPartSlots = static_cast<int64_t>(kSlots) * kThreads;

__device__ __forceinline__ void keep_part(StorePorts& port, const StoreWork& work,
                                          uint32_t thread) {
  float4* slots = reinterpret_cast<float4*>(port.partials) +
                  (static_cast<int64_t>(work.tile) * kPARTS + work.part) * kPartSlots + thread;
  // Without k-blocks the accumulator was never written.
  const bool none = work.k_blocks == 0;
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    const float* acc = port.acc + 4 * i;
    slots[i * kThreads] = none ? make_float4(0.f, 0.f, 0.f, 0.f)
                               : make_float4(acc[0], acc[1], acc[2], acc[3]);
  }
}

__device__ __forceinline__ void store_pair(StorePorts& port, int row, int column, float a, float b) {
  if (row < port.M && column < port.N) {
    T* place = port.C + static_cast<int64_t>(row) * port.N + column;
    *reinterpret_cast<uint32_t*>(place) = pipelink::pack_pair<T>(a, b);
  }
}

__device__ __forceinline__ void add_share(StorePorts& port, const StoreWork& work,
                                          uint32_t thread) {
  const int first = (work.part - kPARTS) * kShare;
  const float4* slots = reinterpret_cast<const float4*>(port.sums) +
                        static_cast<int64_t>(work.tile) * kPARTS * kPartSlots +
                        first * kThreads + thread;
  const int row = work.m + pipelink::fragment_row(thread);
  const int column = work.n + pipelink::fragment_column(thread) + 8 * first;
#pragma unroll
  for (int i = 0; i < kShare; ++i) {
    float4 part[kPARTS];
#pragma unroll
    for (int p = 0; p < kPARTS; ++p) part[p] = __ldcg(slots + p * kPartSlots + i * kThreads);
    float4 sum = part[0];
#pragma unroll
    for (int p = 1; p < kPARTS; ++p) {
      sum.x += part[p].x;
      sum.y += part[p].y;
      sum.z += part[p].z;
      sum.w += part[p].w;
    }
    store_pair(port, row, column + 8 * i, sum.x, sum.y);
    store_pair(port, row + 8, column + 8 * i, sum.z, sum.w);
  }
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(store)(const PL_COMPONENT::StoreRelocations&, PL_COMPONENT::StorePorts& port,
                const PL_COMPONENT::StoreWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  if (work.part < kPARTS) {
    keep_part(port, work, thread);
    pl_counter_signal(port.done, work.tile);
  } else {
    pl_counter_wait_until(port.ready, work.tile, kPARTS);
    add_share(port, work, thread);
  }
}
