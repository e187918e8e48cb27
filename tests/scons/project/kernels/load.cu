#include "load.contract.cuh"

PL_ENTRY(load)(/* as generated */) { body(load); }
