// The accumulator fragment of wgmma m64nN, as one thread of a role holds it.  `thread` counts from
// the first thread of the role; 128 threads hold 64 rows.
//
// A thread holds pairs of neighboring columns in two rows, `row` and `row + 8`:
//
//     acc[4 j], acc[4 j + 1]          (row, column + 8 j), (row, column + 8 j + 1)
//     acc[4 j + 2], acc[4 j + 3]      the same columns of row + 8
//
// with row = 16 (thread / 32) + thread % 32 / 4 and column = 2 (thread % 4), counted from the first
// element of the tile (PTX ISA, wgmma register fragment).
#pragma once

#include <pipelink/pairs.cuh>
#include <pipelink/shared.cuh>

namespace pipelink {

/// Two neighboring columns of one row, in the registers of an accumulator.
struct Pair {
  float& low;
  float& high;

  __device__ __forceinline__ void operator+=(float2 add) const {
    low += add.x;
    high += add.y;
  }
  __device__ __forceinline__ operator float2() const { return make_float2(low, high); }
};

/// A tile of a matrix: its first element, and the extents of the whole matrix.  The matrix has a
/// multiple of 8 columns, so eight columns of a fragment are inside or outside together.
struct MatrixTile {
  int row, column;
  int rows, columns;
};

/// Where an element is in the matrix.
struct Place {
  int row, column;
  int64_t offset;  // row-major: row * columns + column
};

/// The row of acc[0] in the tile.
__device__ __forceinline__ uint32_t fragment_row(uint32_t thread) {
  return thread / 32 * 16 + thread % 32 / 4;
}

/// The column of acc[0] in the tile.
__device__ __forceinline__ uint32_t fragment_column(uint32_t thread) { return thread % 4 * 2; }

/// Whether a row or column is inside of an extent.  Those of the last tile may be up to 2^31 + 255,
/// so they are unsigned.
__device__ __forceinline__ bool inside(uint32_t place, int extent) {
  return place < static_cast<uint32_t>(extent);
}

/// Calls `visit(column, upper, lower)` for every two neighboring columns that this thread holds of
/// a tile that begins at column `first` of a matrix with `columns` columns, a multiple of 8; those
/// outside the matrix are skipped.  `upper` and `lower` are the pairs in both rows.
/// @threads any; each visits what it holds
template <int Registers, typename Visit>
__device__ __forceinline__ void for_each_column(float (&acc)[Registers], int first, int columns,
                                                uint32_t thread, Visit visit) {
  const uint32_t column = first + fragment_column(thread);
#pragma unroll
  for (int j = 0; j < Registers / 4; ++j) {
    if (inside(column + 8 * j, columns)) {
      visit(static_cast<int>(column + 8 * j), Pair{acc[4 * j], acc[4 * j + 1]},
            Pair{acc[4 * j + 2], acc[4 * j + 3]});
    }
  }
}

/// Calls `visit(place, pair)` for every pair that this thread holds, row by row; `place` is that of
/// its first column, and pairs outside the matrix are skipped.
/// @threads any; each visits what it holds
template <int Registers, typename Visit>
__device__ __forceinline__ void for_each_pair(float (&acc)[Registers], const MatrixTile& tile,
                                              uint32_t thread, Visit visit) {
  const uint32_t column = tile.column + fragment_column(thread);
  const auto visit_row = [&](uint32_t row, int first) {
    if (!inside(row, tile.rows)) return;
    const int64_t offset = static_cast<int64_t>(row) * static_cast<uint32_t>(tile.columns) + column;
#pragma unroll
    for (int j = 0; j < Registers / 4; ++j) {
      if (inside(column + 8 * j, tile.columns)) {
        visit(Place{static_cast<int>(row), static_cast<int>(column + 8 * j), offset + 8 * j},
              Pair{acc[4 * j + first], acc[4 * j + first + 1]});
      }
    }
  };
  const uint32_t row = tile.row + fragment_row(thread);
  visit_row(row, 0);
  visit_row(row + 8, 2);
}

/// Rounds the warp's 16 rows of columns [Width c, Width c + Width) to T and writes them to shared
/// memory, row by row, under the swizzle of a row's length, as a tensor map with that swizzle
/// stores them.
/// @threads a converged warp
/// @ptx stmatrix.sync.aligned.m8n8.x4.shared.b16
template <int Width, typename T, int Registers>
__device__ __forceinline__ void stage_columns(const float (&acc)[Registers], int c, uint32_t target,
                                              uint32_t lane) {
  const uint32_t row = lane & 15;
#pragma unroll
  for (int pair = 0; pair < Width / 16; ++pair) {
    const float* values = acc + 4 * (Width / 8 * c + 2 * pair);
    const uint32_t chunk = 2 * pair + (lane >> 4);
    store_matrix_4(target + swizzle<Width * sizeof(T)>(row, chunk),
                   pack_pair<T>(values[0], values[1]), pack_pair<T>(values[2], values[3]),
                   pack_pair<T>(values[4], values[5]), pack_pair<T>(values[6], values[7]));
  }
}

/// Rounds the warp's 16 rows of columns [Width c, Width c + Width) to T and writes them transposed
/// to shared memory: Width rows of 16 elements.
/// @threads a converged warp
/// @ptx stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
template <int Width, typename T, int Registers>
__device__ __forceinline__ void stage_transposed(const float (&acc)[Registers], int c,
                                                 uint32_t target, uint32_t lane) {
  constexpr uint32_t kRowBytes = 16 * sizeof(T);
  // Lanes 8 i .. 8 i + 7 address the rows of matrix i: rows 0-7, left and right half; rows 8-15.
  const uint32_t first = target + (lane % 8 + lane / 16 * 8) * kRowBytes + lane / 8 % 2 * 16;
#pragma unroll
  for (int j = 0; j < Width / 8; j += 2) {
    const float* values = acc + 4 * (Width / 8 * c + j);
    store_transposed_4(first + 8 * j * kRowBytes, pack_pair<T>(values[0], values[1]),
                       pack_pair<T>(values[2], values[3]), pack_pair<T>(values[4], values[5]),
                       pack_pair<T>(values[6], values[7]));
  }
}

}  // namespace pipelink
