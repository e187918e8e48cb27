// The device runtime that records every operation before it runs, with the watchdog's limit on
// waits: the event buffers are in host memory, so that they outlive the trap that ends a hang.
#include "events.cuh"
#include "watchdog.cuh"

extern "C" {
/// Set by the launcher before a recorded launch.
__device__ pipelink::runtime::EventBuffers pl_record_events;
}

namespace pipelink {
namespace runtime {

struct OperationScope {
  __device__ __forceinline__ OperationScope(Operation operation, uint32_t site, uint32_t stage,
                                            uint32_t value) {
    append(pl_record_events, Event{what_of(operation, site, stage), value, 0, 0});
  }
};

}  // namespace runtime
}  // namespace pipelink

#include "operations.cuh"
