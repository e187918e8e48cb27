// own_mainloop: the wgmma mainloop on barriers of its own.
//
// All threads wait for an item; the first of each warpgroup releases it when its group is complete.
#include <pipelink/wgmma.cuh>

#include "own.cuh"
#include "own_mainloop.contract.cuh"

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
  const bool leader = thread % 128 == 0;
  pipelink::Cursor reading = port.ab;  // the item whose group is in flight
  for (int k = 0; k < work.k_blocks; ++k) {
    own::wait(own::full(at.ab, port.ab.stage), port.ab.phase);
    multiply_block(at.ab.data + port.ab.stage * at.ab.stage_bytes, warpgroup, port.acc, k);
    pipelink::wgmma_wait<1>();
    if (k > 0 && leader) own::arrive(own::empty(at.ab, reading.stage));
    reading = port.ab;
    own::next(at.ab, port.ab);
  }
  pipelink::wgmma_wait<0>();
  pipelink::wgmma_settle(port.acc);
  if (work.k_blocks > 0 && leader) own::arrive(own::empty(at.ab, reading.stage));
}
