// What every generated contract header includes first.
#pragma once

#include <pipelink/abi.cuh>
#include <pipelink/runtime.cuh>

/// Defines the entry of a role: `PL_ENTRY(load)(const LoadRelocations& at, ...) { ... }`.
#define PL_ENTRY(role) PL_ENTRY_##role
