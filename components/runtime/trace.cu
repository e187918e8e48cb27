// The device runtime that records when every operation begins and ends, warp by warp.
#include "events.cuh"
#include "waits.cuh"

extern "C" {
/// Set by the launcher before a traced launch.
__device__ pipelink::runtime::EventBuffers pl_trace_events;
}

namespace pipelink {
namespace runtime {

struct OperationScope {
  uint32_t what, value, begin;

  __device__ __forceinline__ OperationScope(Operation operation, uint32_t site, uint32_t stage,
                                            uint32_t value)
      : what(what_of(operation, site, stage)), value(value), begin(clock_now()) {}

  __device__ __forceinline__ ~OperationScope() {
    append(pl_trace_events, Event{what, value, begin, clock_now()});
  }
};

}  // namespace runtime
}  // namespace pipelink

#include "operations.cuh"
