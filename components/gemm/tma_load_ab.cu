// tma_load_ab: k-blocks [k_first, k_first + k_blocks) of A and B, one per ring item.
//
//     A [M, K] ──▶ ┌─────────────┐
//                  │ tma_load_ab │ ──▶ ab: {A [TM, TK], B [TN, TK]} per k-block
//     B [N, K] ──▶ └─────────────┘
//
// Elements outside A and B arrive as zeros, so ragged edges need no code.
#include "tma_load_ab.contract.cuh"

PL_ENTRY(load)(const PL_COMPONENT::LoadRelocations& at, PL_COMPONENT::LoadPorts& port,
               const PL_COMPONENT::LoadWork& work, uint32_t) {
  using namespace PL_COMPONENT;
  for (int i = 0; i < work.k_blocks; ++i) {
    const int k = work.k_first + i;
    pl_ring_acquire(at.ab, port.ab);
    pl_ring_expect(at.ab, port.ab, Ab::kBytes);
    pl_ring_copy_tile(at.ab, port.ab, Ab::kA, port.A, k * kTK, work.m);
    pl_ring_copy_tile(at.ab, port.ab, Ab::kB, port.B, k * kTK, work.n);
    pl_ring_advance(at.ab, port.ab);
  }
}
