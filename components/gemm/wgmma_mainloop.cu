// wgmma_mainloop: acc = A tile x B tile^T over the k-blocks of a work tile.
//
//     ab: {A [TM, TK], B [TN, TK]} per k-block ──▶ wgmma_mainloop ──▶ acc [TM, TN], f32
//
// Each warpgroup owns 64 rows.  One wgmma group stays in flight: a stage is released when the
// group after it has been issued and the one that read it is complete.
#include <pipelink/wgmma.cuh>

#include "wgmma_mainloop.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kRowsBytes = 64 * kTK * sizeof(T);  // one warpgroup's rows of A

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(mma)(const PL_COMPONENT::MmaRelocations& at, PL_COMPONENT::MmaPorts& port,
              const PL_COMPONENT::MmaWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const uint32_t warpgroup = pipelink::uniform(thread / 128);
  pipelink::Cursor reading = port.ab;  // the item whose group is in flight
  for (int k = 0; k < work.k_blocks; ++k) {
    pl_ring_wait(at.ab, port.ab);
    const uint32_t stage = pipelink::stage_address(at.ab, port.ab);
    const uint64_t a = pipelink::wgmma_descriptor(stage + Ab::kA + warpgroup * kRowsBytes);
    const uint64_t b = pipelink::wgmma_descriptor(stage + Ab::kB);
    pipelink::wgmma_fence();
    // The first block overwrites what the registers hold.
    pipelink::wgmma_tile<kTN, kTK, T>(port.acc, a, b, k != 0);
    pipelink::wgmma_commit();
    pipelink::wgmma_wait<1>();
    if (k > 0) pl_ring_release(at.ab, reading);
    reading = port.ab;
    pl_ring_advance(at.ab, port.ab);
  }
  pipelink::wgmma_wait<0>();
  pipelink::wgmma_settle(port.acc);
  if (work.k_blocks > 0) pl_ring_release(at.ab, reading);
}
