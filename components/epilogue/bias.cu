// bias: acc[row, col] += vector[col].
#include <pipelink/fragment.cuh>

#include "bias.contract.cuh"

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations&, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  const int column = work.n + pipelink::fragment_column(thread);
#pragma unroll
  for (int j = 0; j < kTN / 8; ++j) {
    // N is a multiple of 8: eight columns are inside or outside together.
    if (column + 8 * j < port.N) {
      const float2 add = pipelink::load_pair(port.vector + column + 8 * j);
      port.acc[4 * j + 0] += add.x;
      port.acc[4 * j + 1] += add.y;
      port.acc[4 * j + 2] += add.x;
      port.acc[4 * j + 3] += add.y;
    }
  }
}
