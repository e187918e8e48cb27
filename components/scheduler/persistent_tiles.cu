// persistent_tiles: index -> tile of C, GROUP tile rows at a time.
#include <pipelink/tiles.cuh>

#include "persistent_tiles.contract.cuh"

PL_ENTRY(next)(const PL_COMPONENT::NextPorts& port, uint32_t index, PL_COMPONENT::NextWork& work) {
  using namespace PL_COMPONENT;
  const pipelink::TilePlace tile = pipelink::grouped_tile<kGROUP>(
      index, pipelink::tile_count<kTM>(port.M), pipelink::tile_count<kTN>(port.N));
  work.m = static_cast<int32_t>(tile.row * kTM);
  work.n = static_cast<int32_t>(tile.column * kTN);
  work.k_blocks = pipelink::tile_count<kTK>(port.K);
}
