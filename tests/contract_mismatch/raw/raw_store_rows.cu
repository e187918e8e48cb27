// raw_store_rows: one bulk store group per row, all by one thread.
#include "raw.cuh"
#include "raw_store_rows.contract.cuh"

PL_ENTRY(store)(const PL_COMPONENT::StoreRelocations& at, PL_COMPONENT::StorePorts& port,
                const PL_COMPONENT::StoreWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  if (thread == 0) {
    raw::wait(raw::full(at.block, port.block.stage), port.block.phase);
    const uint32_t data = at.block.data + port.block.stage * at.block.stage_bytes + Block::kRows;
    for (int row = 0; row < work.rows; ++row)
      raw::store(port.Y + static_cast<int64_t>(work.row + row) * kD, data + row * kD * 4, kD * 4);
    raw::commit();
    raw::drain();
    raw::arrive(raw::empty(at.block, port.block.stage));
  }
  raw::next(at.block, port.block);
}
