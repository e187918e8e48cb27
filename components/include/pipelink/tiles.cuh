// Walks over the tiles of a matrix, for tile schedulers.
#pragma once

#include <cstdint>

namespace pipelink {

/// How many tiles of `Tile` elements cover `extent` elements.  Unsigned: the sum may exceed 2^31.
template <uint32_t Tile>
__device__ __forceinline__ int32_t tile_count(int32_t extent) {
  return static_cast<int32_t>((static_cast<uint32_t>(extent) + Tile - 1) / Tile);
}

/// Position of a tile, counted in tiles.
struct TilePlace {
  uint32_t row, column;
};

/// Tile number `index` of a matrix of `rows` x `columns` tiles, walked `Group` rows at a time and
/// column by column inside a group: CTAs that run together share rows of A and columns of B in L2.
template <uint32_t Group>
__device__ __forceinline__ TilePlace grouped_tile(uint32_t index, uint32_t rows, uint32_t columns) {
  // Group * columns may exceed 2^32, where all rows are in one group.
  const uint32_t first = index / columns / Group * Group;
  const uint32_t inside = index - first * columns;
  const uint32_t height = min(rows - first, Group);
  // The last group may be short; all others divide by a constant.
  const uint32_t column = height == Group ? inside / Group : inside / height;
  return {first + inside - column * height, column};
}

}  // namespace pipelink
