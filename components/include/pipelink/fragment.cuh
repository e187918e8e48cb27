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
__device__ __forceinline__ int fragment_row(uint32_t thread) {
  return static_cast<int>(thread / 32 * 16 + thread % 32 / 4);
}

/// The column of acc[0] in the tile.
__device__ __forceinline__ int fragment_column(uint32_t thread) {
  return static_cast<int>(thread % 4 * 2);
}

/// Calls `visit(column, upper, lower)` for every two neighboring columns that this thread holds of
/// a tile that begins at column `first` of a matrix with `columns` columns, a multiple of 8; those
/// outside the matrix are skipped.  `upper` and `lower` are the pairs in both rows.
/// @threads any; each visits what it holds
template <int Registers, typename Visit>
__device__ __forceinline__ void for_each_column(float (&acc)[Registers], int first, int columns,
                                                uint32_t thread, Visit visit) {
  const int column = first + fragment_column(thread);
#pragma unroll
  for (int j = 0; j < Registers / 4; ++j) {
    if (column + 8 * j < columns) {
      visit(column + 8 * j, Pair{acc[4 * j], acc[4 * j + 1]}, Pair{acc[4 * j + 2], acc[4 * j + 3]});
    }
  }
}

/// Calls `visit(place, pair)` for every pair that this thread holds, row by row; `place` is that of
/// its first column, and pairs outside the matrix are skipped.
/// @threads any; each visits what it holds
template <int Registers, typename Visit>
__device__ __forceinline__ void for_each_pair(float (&acc)[Registers], const MatrixTile& tile,
                                              uint32_t thread, Visit visit) {
  const int column = tile.column + fragment_column(thread);
  const auto visit_row = [&](int row, int first) {
    if (row >= tile.rows) return;
    const int64_t offset = static_cast<int64_t>(row) * tile.columns + column;
#pragma unroll
    for (int j = 0; j < Registers / 4; ++j) {
      if (column + 8 * j < tile.columns) {
        visit(Place{row, column + 8 * j, offset + 8 * j},
              Pair{acc[4 * j + first], acc[4 * j + first + 1]});
      }
    }
  };
  const int row = tile.row + fragment_row(thread);
  visit_row(row, 0);
  visit_row(row + 8, 2);
}

/// Rounds the warp's 16 rows of columns [64 c, 64 c + 64) to T and writes them to shared memory:
/// 128 bytes a row under the 128-byte swizzle, as a tensor map with that swizzle stores them.
/// @threads a converged warp
/// @ptx stmatrix.sync.aligned.m8n8.x4.shared.b16
template <typename T, int Registers>
__device__ __forceinline__ void stage_columns(const float (&acc)[Registers], int c, uint32_t target,
                                              uint32_t lane) {
  const uint32_t row = lane & 15;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const float* values = acc + 4 * (8 * c + 2 * pair);
    const uint32_t chunk = 2 * pair + (lane >> 4);
    store_matrix_4(target + swizzle_128(row, chunk), pack_pair<T>(values[0], values[1]),
                   pack_pair<T>(values[2], values[3]), pack_pair<T>(values[4], values[5]),
                   pack_pair<T>(values[6], values[7]));
  }
}

}  // namespace pipelink
