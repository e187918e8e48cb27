#include "store.contract.cuh"

PL_ENTRY(store)(/* as generated */) { body(store); }
