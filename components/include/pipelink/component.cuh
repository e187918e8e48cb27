// What every generated contract header includes first.
#pragma once

#include <pipelink/abi.cuh>
#include <pipelink/runtime.cuh>

/// Defines the entry of a role: `PL_ENTRY(load)(const LoadRelocations& at, ...) { ... }`.  The
/// generated header also defines PL_COMPONENT, the namespace of its types and constants.
#define PL_ENTRY(role) PL_ENTRY_##role
