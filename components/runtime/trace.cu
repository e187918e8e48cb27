// The device runtime that notes when every operation begins and ends, warp by warp.
#include "notes.cuh"
#include "waits.cuh"

extern "C" {
/// Set by the launcher before a traced launch.
__device__ pipelink::runtime::Notes pl_trace_notes;
}

namespace pipelink {
namespace runtime {

struct Step {
  uint32_t what, value, begin;

  __device__ __forceinline__ Step(Operation operation, uint32_t site, uint32_t stage,
                                  uint32_t value)
      : what(what_of(operation, site, stage)), value(value), begin(clock_now()) {}

  __device__ __forceinline__ ~Step() {
    append(pl_trace_notes, Event{what, value, begin, clock_now()});
  }
};

}  // namespace runtime
}  // namespace pipelink

#include "operations.cuh"
