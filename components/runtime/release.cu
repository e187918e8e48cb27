// The device runtime as it ships: every operation as short as the hardware allows.
#include "waits.cuh"

namespace pipelink {
namespace runtime {

using Step = NoStep;

}  // namespace runtime
}  // namespace pipelink

#include "operations.cuh"
