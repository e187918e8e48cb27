// raw_load_ab: A and B by raw instructions; one thread does everything.
#include "raw.cuh"
#include "raw_load_ab.contract.cuh"

PL_ENTRY(load)(const PL_COMPONENT::LoadRelocations& at, PL_COMPONENT::LoadPorts& port,
               const PL_COMPONENT::LoadWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  uint32_t stage = port.ab.stage, phase = port.ab.phase;
  for (int k = 0; k < work.k_blocks; ++k) {
    if (thread == 0) {
      raw::wait(raw::empty(at.ab, stage), phase ^ 1);
      const uint32_t full = raw::full(at.ab, stage);
      raw::announce(full, Ab::kBytes);
      const uint32_t data = at.ab.data + stage * at.ab.stage_bytes;
      raw::load_box(data + Ab::kA, port.A, full, k * kTK, work.m);
      raw::load_box(data + Ab::kB, port.B, full, k * kTK, work.n);
    }
    if (++stage == at.ab.stages) stage = 0, phase ^= 1;
  }
  port.ab.stage = stage, port.ab.phase = phase;
}
