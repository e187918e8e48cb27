#include "scale.contract.cuh"
#include "scale.cuh"
// fake: registers=48

PL_ENTRY(compute)(/* as generated */) { body(scale); }
