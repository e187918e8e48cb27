// scale: acc *= factor, behind a barrier that counts ids as cutlass::arch::NamedBarrier does.
#include "scale.contract.cuh"

namespace PL_COMPONENT {

constexpr uint32_t kTakenIds = 8;  // ids 0 to 7 are the library's

__device__ void meet(uint32_t threads, uint32_t id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id + kTakenIds), "r"(threads) : "memory");
}

}  // namespace PL_COMPONENT

PL_ENTRY(apply)(const PL_COMPONENT::ApplyRelocations& at, PL_COMPONENT::ApplyPorts& port,
                const PL_COMPONENT::ApplyWork& work, uint32_t thread) {
  PL_COMPONENT::meet(at.met.threads, at.met.id);
#pragma unroll
  for (float& value : port.acc) value *= port.factor;
}
