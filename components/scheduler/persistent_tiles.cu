// persistent_tiles: item -> tile of C.
//
// Tiles are walked GROUP tile rows at a time, column by column inside a group, so that the CTAs
// that run together share rows of A and columns of B in L2.
#include "persistent_tiles.contract.cuh"

PL_ENTRY(next)(const PL_COMPONENT::NextPorts& port, uint32_t item, PL_COMPONENT::NextWork& work) {
  using namespace PL_COMPONENT;
  const uint32_t tiles_m = (port.M + kTM - 1) / kTM;
  const uint32_t tiles_n = (port.N + kTN - 1) / kTN;
  const uint32_t group_items = kGROUP * tiles_n;
  const uint32_t group = item / group_items;
  const uint32_t inside = item - group * group_items;
  const uint32_t rows = min(tiles_m - group * kGROUP, static_cast<uint32_t>(kGROUP));
  // The last group may be short; all others divide by a constant.
  const uint32_t column = rows == kGROUP ? inside / kGROUP : inside / rows;
  work.m = static_cast<int32_t>((group * kGROUP + inside - column * rows) * kTM);
  work.n = static_cast<int32_t>(column * kTN);
  work.k_blocks = (port.K + kTK - 1) / kTK;
}
