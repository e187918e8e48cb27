// residual: acc[row, col] += addend[row, col].
#include <pipelink/fragment.cuh>

#include "residual.contract.cuh"

namespace PL_COMPONENT {
namespace {

/// Adds the addends of one row of the fragment to acc[4 j + first], acc[4 j + first + 1].
__device__ __forceinline__ void add_row(ApplyPorts& port, int row, int column, int first) {
  if (row >= port.M) return;
  const T* addend = port.addend + static_cast<int64_t>(row) * port.N;
#pragma unroll
  for (int j = 0; j < kTN / 8; ++j) {
    // N is a multiple of 8: eight columns are inside or outside together.
    if (column + 8 * j < port.N) {
      const float2 add = pipelink::load_pair(addend + column + 8 * j);
      port.acc[4 * j + first] += add.x;
      port.acc[4 * j + first + 1] += add.y;
    }
  }
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations&, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  const int row = work.m + pipelink::fragment_row(thread);
  const int column = work.n + pipelink::fragment_column(thread);
  PL_COMPONENT::add_row(port, row, column, 0);
  PL_COMPONENT::add_row(port, row + 8, column, 2);
}
