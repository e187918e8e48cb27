// split_k_tiles: index -> tile of C and part of K, then tile and slice of its sum.
//
//     index / tiles = 0 .. PARTS-1           multiply k-blocks [part Kb/PARTS, (part+1) Kb/PARTS)
//                     PARTS .. 2 PARTS-1     add up
//
// If K has fewer k-blocks than there are parts, some parts have none.
#include <pipelink/tiles.cuh>

#include "split_k_tiles.contract.cuh"

PL_ENTRY(next)(const PL_COMPONENT::NextPorts& port, uint32_t index, PL_COMPONENT::NextWork& work) {
  using namespace PL_COMPONENT;
  const uint32_t tiles_m = pipelink::tile_count<kTM>(port.M);
  const uint32_t tiles_n = pipelink::tile_count<kTN>(port.N);
  const uint32_t tiles = tiles_m * tiles_n;
  const uint32_t part = index / tiles;
  const uint32_t tile = index - part * tiles;
  const uint32_t column = tile / tiles_m;
  const uint32_t blocks = pipelink::tile_count<kTK>(port.K);
  // At most 2^31 / TK blocks, so the product with a part fits.
  const uint32_t first = part * blocks / kPARTS;
  const uint32_t end = (part + 1) * blocks / kPARTS;
  work.m = static_cast<int32_t>((tile - column * tiles_m) * kTM);
  work.n = static_cast<int32_t>(column * kTN);
  work.k_first = static_cast<int32_t>(first);
  work.k_blocks = part < kPARTS ? static_cast<int32_t>(end - first) : 0;
  work.tile = static_cast<int32_t>(tile);
  work.part = static_cast<int32_t>(part);
}
