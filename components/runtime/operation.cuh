// What the builds of the device runtime share below the operations: their numbers, the elected
// lane, and the scope that records nothing.
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

/// Every operation has an OperationScope: constructed when it starts, destroyed when it ends.  This
/// one is for builds that record nothing.
struct NoScope {
  __device__ __forceinline__ NoScope(Operation, uint32_t, uint32_t, uint32_t) {}
};

}  // namespace runtime
}  // namespace pipelink
