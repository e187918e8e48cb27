// The device runtime that turns a hang into a message: a wait beyond the limit writes a report to
// host memory and traps (watchdog.cuh).
#include "watchdog.cuh"

namespace pipelink {
namespace runtime {

using OperationScope = NoScope;

}  // namespace runtime
}  // namespace pipelink

#include "operations.cuh"
