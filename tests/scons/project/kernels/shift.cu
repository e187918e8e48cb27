#include "shift.contract.cuh"
// fake: registers=48

PL_ENTRY(compute)(/* as generated */) { body(shift); }
