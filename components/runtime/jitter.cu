// The device runtime that delays every operation by a random time, so that a result that depends on
// the order of warps changes.  The delays follow from a seed, warp by warp.  Waits have the
// watchdog's limit.
#include "watchdog.cuh"

namespace pipelink {
namespace runtime {

/// What the launcher writes before the first launch; all zero = no delays.
struct alignas(16) Jitter {
  unsigned long long states;  // one word a warp: its generator, never 0
  uint32_t ctas;
  uint32_t cycles;  // longest usual delay; a power of two
};

}  // namespace runtime
}  // namespace pipelink

extern "C" {
/// Set by the launcher.
__device__ pipelink::runtime::Jitter pl_jitter;
}

namespace pipelink {
namespace runtime {

/// Half of the operations start immediately, the others wait up to `cycles`, one in 64 eight times
/// as long: short delays reorder neighboring operations, long ones let a ring run full or empty.
__device__ __forceinline__ uint32_t delay_of(uint32_t drawn, uint32_t cycles) {
  if (drawn & 1) return 0;
  const uint32_t delay = drawn >> 8 & (cycles - 1);
  return (drawn >> 1 & 31) == 0 ? 8 * delay : delay;
}

/// The next number of this warp's generator (Marsaglia's xorshift with shifts 13, 17, 5).
__device__ __forceinline__ uint32_t draw() {
  uint32_t* state = reinterpret_cast<uint32_t*>(pl_jitter.states) +
                    (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
  uint32_t value = *state;
  value ^= value << 13;
  value ^= value >> 17;
  value ^= value << 5;
  *state = value;
  return value;
}

__device__ __forceinline__ uint32_t cycle() {
  uint32_t now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
  return now;
}

struct OperationScope {
  __device__ __forceinline__ OperationScope(Operation, uint32_t, uint32_t, uint32_t) {
    if (elect() && blockIdx.x < pl_jitter.ctas) {
      const uint32_t delay = delay_of(draw(), pl_jitter.cycles);
      const uint32_t start = cycle();
      while (cycle() - start < delay) {
      }
    }
    __syncwarp();
  }
};

}  // namespace runtime
}  // namespace pipelink

#include "operations.cuh"
