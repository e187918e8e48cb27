// row_blocks: index -> rows [row, row + rows).
#include "row_blocks.contract.cuh"

PL_ENTRY(next)(const PL_COMPONENT::NextPorts& port, uint32_t item, PL_COMPONENT::NextWork& work) {
  using namespace PL_COMPONENT;
  work.row = static_cast<int32_t>(item * kROWS);
  work.rows = min(kROWS, port.R - work.row);
}
