// residual: acc[row, col] += addend[row, col].
#include <pipelink/fragment.cuh>

#include "residual.contract.cuh"

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations&, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  using namespace pipelink;
  const MatrixTile tile{work.m, work.n, port.M, port.N};
  for_each_pair(port.acc, tile, thread, [&](const Place& place, Pair pair) {
    pair += load_pair(port.addend + place.offset);
  });
}
