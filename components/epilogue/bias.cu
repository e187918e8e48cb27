// bias: acc[row, col] += vector[col].
#include <pipelink/fragment.cuh>

#include "bias.contract.cuh"

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations&, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  using namespace pipelink;
  for_each_column(port.acc, work.n, port.N, thread, [&](int column, Pair upper, Pair lower) {
    const float2 add = load_pair(port.vector + column);
    upper += add;
    lower += add;
  });
}
