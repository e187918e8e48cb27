// raw_mainloop: the wgmma mainloop with raw barrier instructions.
//
// All threads wait for an item; the first of each warpgroup releases it when its group is complete.
#include <pipelink/wgmma.cuh>

#include "raw.cuh"
#include "raw_mainloop.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kRowsBytes = 64 * kTK * sizeof(T);  // one warpgroup's rows of A

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(mma)(const PL_COMPONENT::MmaRelocations& at, PL_COMPONENT::MmaPorts& port,
              const PL_COMPONENT::MmaWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const uint32_t warpgroup = pipelink::uniform(thread / 128);
  const bool leader = thread % 128 == 0;
  pipelink::Cursor reading = port.ab;  // the item whose group is in flight
  for (int k = 0; k < work.k_blocks; ++k) {
    raw::wait(raw::full(at.ab, port.ab.stage), port.ab.phase);
    const uint32_t stage = at.ab.data + port.ab.stage * at.ab.stage_bytes;
    const uint64_t a = pipelink::wgmma_descriptor(stage + Ab::kA + warpgroup * kRowsBytes);
    const uint64_t b = pipelink::wgmma_descriptor(stage + Ab::kB);
    pipelink::wgmma_fence();
    pipelink::wgmma_tile<kTN, kTK, T>(port.acc, a, b, k != 0);
    pipelink::wgmma_commit();
    pipelink::wgmma_wait<1>();
    if (k > 0 && leader) raw::arrive(raw::empty(at.ab, reading.stage));
    reading = port.ab;
    raw::next(at.ab, port.ab);
  }
  pipelink::wgmma_wait<0>();
  pipelink::wgmma_settle(port.acc);
  if (work.k_blocks > 0 && leader) raw::arrive(raw::empty(at.ab, reading.stage));
}
