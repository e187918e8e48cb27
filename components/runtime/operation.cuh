// What the builds of the device runtime have in common below the operations: their numbers, the
// elected lane, and the step that notes nothing.
#pragma once

#include <pipelink/runtime.cuh>

namespace pipelink {
namespace runtime {

/// Numbers in reports and recordings; pipelink_rules/model/recording.py gives their names.
enum Operation : uint32_t {
  kAcquire = 0,
  kWait = 1,
  kSync = 2,
  kArrive = 3,
  kExpect = 4,
  kCopyTile = 5,
  kCopyBulk = 6,
  kCommit = 7,
  kRelease = 8,
  kStoreTile = 9,
  kStoreBulk = 10,
  kStoreWait = 11,
  kFence = 12,
  kSignal = 13,
  kWaitUntil = 14,
};

/// True in one lane of the converged warp; the same lane every time (PTX ISA, elect.sync).
__device__ __forceinline__ bool elect() {
  uint32_t elected;
  asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(elected));
  return elected != 0;
}

/// The hook of every operation: made when it starts, gone when it is over.  This one is for builds
/// that look at waits only.
struct NoStep {
  __device__ __forceinline__ NoStep(Operation, uint32_t, uint32_t, uint32_t) {}
};

}  // namespace runtime
}  // namespace pipelink
