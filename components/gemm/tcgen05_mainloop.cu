// tcgen05_mainloop: acc = A tile x B tile^T over the k-blocks of a work tile, for sm_100a.
//
//     ab: {A [128, TK], B [TN, TK]} per k-block ──▶ tcgen05_mainloop ──▶ acc [128, TN] (tensor)
//
// One thread of one warp issues everything.  The tensor core itself releases a stage of operands,
// and commits the accumulators, when the mma before are complete; this warp waits for neither.
#include <pipelink/tcgen05.cuh>

#include "tcgen05_mainloop.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr uint32_t kInstruction = pipelink::tcgen05_instruction<kTN, T>();

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(mma)(const PL_COMPONENT::MmaRelocations& at, PL_COMPONENT::MmaPorts& port,
              const PL_COMPONENT::MmaWork& work, uint32_t) {
  using namespace PL_COMPONENT;
  pl_ring_acquire(at.acc, port.acc);
  pl_tensor_fence_after();
  for (int k = 0; k < work.k_blocks; ++k) {
    pl_ring_wait(at.ab, port.ab);
    const uint32_t stage = pipelink::stage_address(at.ab, port.ab);
    const uint64_t a = pipelink::tcgen05_descriptor(stage + Ab::kA);
    const uint64_t b = pipelink::tcgen05_descriptor(stage + Ab::kB);
#pragma unroll
    for (int step = 0; step < kTK / pipelink::kStepK; ++step) {
      // The first step of the first block overwrites what the columns hold.
      pl_tensor_mma(at.acc, port.acc, pipelink::k_step<T>(a, step), pipelink::k_step<T>(b, step),
                    kInstruction, (k | step) != 0);
    }
    pl_mma_commit_empty(at.ab, port.ab);
    pl_ring_advance(at.ab, port.ab);
  }
  pl_mma_commit_full(at.acc, port.acc);
  pl_ring_advance(at.acc, port.acc);
}
