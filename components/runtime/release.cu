// The device runtime that ships: every operation is as short as the hardware allows.
#include "waits.cuh"

namespace pipelink {
namespace runtime {

using OperationScope = NoScope;

}  // namespace runtime
}  // namespace pipelink

#include "operations.cuh"
