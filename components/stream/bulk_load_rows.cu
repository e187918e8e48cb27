// bulk_load_rows: X[row : row + rows, :] into one ring item, by one bulk copy.
//
// Rows are contiguous, so one copy transfers a block of rows; the last block expects fewer bytes.
#include "bulk_load_rows.contract.cuh"

PL_ENTRY(load)(const PL_COMPONENT::LoadRelocations& at, PL_COMPONENT::LoadPorts& port,
               const PL_COMPONENT::LoadWork& work, uint32_t) {
  using namespace PL_COMPONENT;
  const uint32_t bytes = work.rows * kD * static_cast<uint32_t>(sizeof(T));
  pl_ring_acquire(at.block, port.block);
  pl_ring_expect(at.block, port.block, bytes);
  pl_ring_copy_bulk(at.block, port.block, Block::kRows,
                    port.X + static_cast<int64_t>(work.row) * kD, bytes);
  pl_ring_advance(at.block, port.block);
}
