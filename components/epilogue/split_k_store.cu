// split_k_store: the accumulators of all parts of K, added up in the order of the parts.
//
// A part is kept as its threads hold it: 16-byte slot i of thread t holds acc[4 i .. 4 i + 3], and
// the slots of neighboring threads are adjacent.  Every work tile that adds up has a slice of its
// tile: TN / 8 / PARTS slots, columns that the other 2 PARTS - 1 work tiles do not touch.
#include <pipelink/fragment.cuh>

#include "split_k_store.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kSlots = kTN / 8;          // of a thread
constexpr int kSlice = kSlots / kPARTS;  // slots that one work tile adds up
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
    slots[i * kThreads] =
        none ? make_float4(0.f, 0.f, 0.f, 0.f) : make_float4(acc[0], acc[1], acc[2], acc[3]);
  }
}

/// One slot of all parts, added up in order.
__device__ __forceinline__ void add_parts(const float4* slots, float (&sum)[4]) {
  float4 part[kPARTS];
#pragma unroll
  for (int p = 0; p < kPARTS; ++p) part[p] = __ldcg(slots + p * kPartSlots);
#pragma unroll
  for (int p = 1; p < kPARTS; ++p) {
    part[0].x += part[p].x;
    part[0].y += part[p].y;
    part[0].z += part[p].z;
    part[0].w += part[p].w;
  }
  sum[0] = part[0].x;
  sum[1] = part[0].y;
  sum[2] = part[0].z;
  sum[3] = part[0].w;
}

__device__ __forceinline__ void store_slice(StorePorts& port, const StoreWork& work,
                                            uint32_t thread) {
  using namespace pipelink;
  const int first = (work.part - kPARTS) * kSlice;
  const float4* slots = reinterpret_cast<const float4*>(port.sums) +
                        static_cast<int64_t>(work.tile) * kPARTS * kPartSlots + first * kThreads +
                        thread;
#pragma unroll
  for (int i = 0; i < kSlice; ++i) {
    float sum[4];
    add_parts(slots + i * kThreads, sum);
    const MatrixTile columns{work.m, work.n + 8 * (first + i), port.M, port.N};
    for_each_pair(sum, columns, thread,
                  [&](const Place& place, Pair pair) { store_pair(port.C + place.offset, pair); });
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
    store_slice(port, work, thread);
  }
}
