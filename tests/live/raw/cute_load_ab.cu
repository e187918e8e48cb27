// cute_load_ab: A and B by the copy atoms and barriers of CuTe and CUTLASS.
//
// One elected lane fills the stages of the ring; addresses and parities come from the relocation
// and the cursor, in the place of a PipelineState.
#include <cutlass/arch/barrier.h>
#include <cute/arch/cluster_sm90.hpp>
#include <cute/arch/copy_sm90_tma.hpp>

#include "cute_load_ab.contract.cuh"

namespace PL_COMPONENT {
namespace {

using Barrier = cutlass::arch::ClusterTransactionBarrier;
constexpr uint64_t kEvictNormal = 0x1000000000000000;

template <typename Type>
__device__ __forceinline__ Type* shared(uint32_t address) {
  return static_cast<Type*>(__cvta_shared_to_generic(address));
}

}  // namespace
}  // namespace PL_COMPONENT

PL_ENTRY(load)(const PL_COMPONENT::LoadRelocations& at, PL_COMPONENT::LoadPorts& port,
               const PL_COMPONENT::LoadWork& work, uint32_t) {
  using namespace PL_COMPONENT;
  uint32_t stage = port.ab.stage, phase = port.ab.phase;
  const bool leader = cute::elect_one_sync();
  for (int k = 0; k < work.k_blocks; ++k) {
    if (leader) {
      auto* full = shared<uint64_t>(at.ab.full + stage * 8);
      Barrier::wait(shared<uint64_t>(at.ab.empty + stage * 8), phase ^ 1);
      Barrier::arrive_and_expect_tx(full, Ab::kBytes);
      const uint32_t data = at.ab.data + stage * at.ab.stage_bytes;
      cute::SM90_TMA_LOAD_2D::copy(port.A, full, kEvictNormal, shared<void>(data + Ab::kA), k * kTK,
                                   work.m);
      cute::SM90_TMA_LOAD_2D::copy(port.B, full, kEvictNormal, shared<void>(data + Ab::kB), k * kTK,
                                   work.n);
    }
    if (++stage == at.ab.stages) stage = 0, phase ^= 1;
  }
  port.ab.stage = stage, port.ab.phase = phase;
}
