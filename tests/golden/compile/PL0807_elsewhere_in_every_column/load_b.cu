#include "load_b.contract.cuh"

// Every row of tiles begins with another k-block, so that not all CTAs ask for the same one.
PL_ENTRY(load)(const PL_COMPONENT::LoadRelocations& at, PL_COMPONENT::LoadPorts& port,
               const PL_COMPONENT::LoadWork& work, uint32_t) {
  using namespace PL_COMPONENT;
  for (int k = 0; k < work.k_blocks; ++k) {
    const int block = (k + work.m / kTM) % work.k_blocks;
    pl_ring_acquire(at.b, port.b);
    pl_ring_expect(at.b, port.b, B::kBytes);
    pl_ring_copy_tile(at.b, port.b, B::kB, port.B, block * kTK, work.n);
    pl_ring_advance(at.b, port.b);
  }
}
