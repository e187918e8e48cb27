// bulk_store_rows: one ring item to Y[row : row + rows, :], by one bulk copy.
#include "bulk_store_rows.contract.cuh"

PL_ENTRY(store)(const PL_COMPONENT::StoreRelocations& at, PL_COMPONENT::StorePorts& port,
                const PL_COMPONENT::StoreWork& work, uint32_t) {
  using namespace PL_COMPONENT;
  const uint32_t bytes = work.rows * kD * static_cast<uint32_t>(sizeof(T));
  pl_ring_wait(at.block, port.block);
  pl_store_bulk(port.Y + static_cast<int64_t>(work.row) * kD,
                pipelink::stage_address(at.block, port.block) + Block::kRows, bytes);
  pl_store_wait(0);  // the copy has read the stage
  pl_ring_release(at.block, port.block);
  pl_ring_advance(at.block, port.block);
}
