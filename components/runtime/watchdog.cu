// The device runtime that turns a hang into a message: a wait that lasts longer than the limit
// writes who waits, for what and how far it came to a report in host memory, and traps.
#include "watch.cuh"

namespace pipelink {
namespace runtime {

using Step = NoStep;

}  // namespace runtime
}  // namespace pipelink

#include "operations.cuh"
