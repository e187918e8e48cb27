// wgmma_mainloop: acc = A tile x B tile^T over the k-blocks of a work item.
//
//     ab: {A [TM, TK], B [TN, TK]} per k-block ──▶ wgmma_mainloop ──▶ acc [TM, TN], f32
//
// Each warpgroup owns 64 rows.  One wgmma group stays in flight: a stage is released when the
// group after it has been issued and the one that read it is complete.
#include <pipelink/wgmma.cuh>

#include "wgmma_mainloop.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kStepK = 16;                       // k of one wgmma
constexpr int kStepBytes = kStepK * sizeof(T);   // along a swizzled row
constexpr int kRowsBytes = 64 * kTK * sizeof(T);  // one warpgroup's rows of A

__device__ __forceinline__ void multiply_block(uint32_t stage, uint32_t warpgroup,
                                               float (&acc)[kTN / 2], int k) {
  const uint64_t a = pipelink::matrix_descriptor(stage + Ab::kA + warpgroup * kRowsBytes);
  const uint64_t b = pipelink::matrix_descriptor(stage + Ab::kB);
  pipelink::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kTK / kStepK; ++step) {
    // The first step of the first block overwrites what the registers hold.
    pipelink::Wgmma<kTN, T>::step(acc, a + step * (kStepBytes >> 4), b + step * (kStepBytes >> 4),
                                  (k | step) != 0);
  }
  pipelink::wgmma_commit();
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(mma)(const PL_COMPONENT::MmaRelocations& at, PL_COMPONENT::MmaPorts& port,
              const PL_COMPONENT::MmaWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const uint32_t warpgroup = pipelink::uniform(thread / 128);
  pipelink::Cursor reading = port.ab;  // the item whose group is in flight
  for (int k = 0; k < work.k_blocks; ++k) {
    pl_ring_wait(at.ab, port.ab);
    multiply_block(pipelink::stage_address(at.ab, port.ab), warpgroup, port.acc, k);
    pipelink::wgmma_wait<1>();
    if (k > 0) pl_ring_release(at.ab, reading);
    reading = port.ab;
    pl_ring_advance(at.ab, port.ab);
  }
  pipelink::wgmma_wait<0>();
  pipelink::wgmma_settle(port.acc);
  if (work.k_blocks > 0) pl_ring_release(at.ab, reading);
}
