// The device runtime that notes every operation before it happens, with the watchdog's limit on
// waits: the events lie in host memory, so that they outlive the trap that ends a hang.
#include "notes.cuh"
#include "watch.cuh"

extern "C" {
/// Set by the launcher before a recorded launch.
__device__ pipelink::runtime::Notes pl_record_notes;
}

namespace pipelink {
namespace runtime {

struct Step {
  __device__ __forceinline__ Step(Operation operation, uint32_t site, uint32_t stage,
                                  uint32_t value) {
    append(pl_record_notes, Event{what_of(operation, site, stage), value, 0, 0});
  }
};

}  // namespace runtime
}  // namespace pipelink

#include "operations.cuh"
