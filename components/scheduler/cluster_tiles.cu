// cluster_tiles: item -> block of CM x CN tiles of C; place in the cluster -> tile of the block.
//
// Blocks are walked like the tiles of persistent_tiles: GROUP tile rows at a time, column by column
// inside a group.  At the edges of C some tiles of a block lie outside: their CTAs compute zeros
// that nobody stores, because the others need what they load.
#include "cluster_tiles.contract.cuh"

namespace PL_COMPONENT {
namespace {

constexpr int kBlockM = kCM * kTM;
constexpr int kBlockN = kCN * kTN;
constexpr uint32_t kRows = kGROUP / kCM;  // block rows that are walked together

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(next)(const PL_COMPONENT::NextPorts& port, uint32_t item, PL_COMPONENT::NextWork& work) {
  using namespace PL_COMPONENT;
  const uint32_t blocks_m = (port.M + kBlockM - 1) / kBlockM;
  const uint32_t blocks_n = (port.N + kBlockN - 1) / kBlockN;
  const uint32_t group_items = kRows * blocks_n;
  const uint32_t group = item / group_items;
  const uint32_t inside = item - group * group_items;
  const uint32_t rows = min(blocks_m - group * kRows, kRows);
  // The last group may be short; all others divide by a constant.
  const uint32_t column = rows == kRows ? inside / kRows : inside / rows;
  const uint32_t row = group * kRows + inside - column * rows;
  work.m = static_cast<int32_t>((row * kCM + port.pl_cluster.x) * kTM);
  work.n = static_cast<int32_t>((column * kCN + port.pl_cluster.y) * kTN);
  work.k_blocks = (port.K + kTK - 1) / kTK;
}
