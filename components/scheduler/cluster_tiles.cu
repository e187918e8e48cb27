// cluster_tiles: index -> block of CM x CN tiles of C; place in the cluster -> tile of the block.
//
// Blocks are walked like the tiles of persistent_tiles, GROUP tile rows at a time.  At the edges of
// C some tiles of a block are outside: their CTAs compute zeros that are not stored, because the
// other CTAs need what they load.
#include <pipelink/tiles.cuh>

#include "cluster_tiles.contract.cuh"

PL_ENTRY(next)(const PL_COMPONENT::NextPorts& port, uint32_t index, PL_COMPONENT::NextWork& work) {
  using namespace PL_COMPONENT;
  const pipelink::TilePlace block = pipelink::grouped_tile<kGROUP / kCM>(
      index, pipelink::tile_count<kCM * kTM>(port.M), pipelink::tile_count<kCN * kTN>(port.N));
  work.m = static_cast<int32_t>((block.row * kCM + port.pl_cluster.x) * kTM);
  work.n = static_cast<int32_t>((block.column * kCN + port.pl_cluster.y) * kTN);
  work.k_blocks = pipelink::tile_count<kTK>(port.K);
}
