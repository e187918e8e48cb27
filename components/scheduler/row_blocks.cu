// row_blocks: index -> rows [row, row + rows).
#include "row_blocks.contract.cuh"

PL_ENTRY(next)(const PL_COMPONENT::NextPorts& port, uint32_t index, PL_COMPONENT::NextWork& work) {
  using namespace PL_COMPONENT;
  work.row = static_cast<int32_t>(index * kROWS);
  work.rows = min(kROWS, port.R - work.row);
}
