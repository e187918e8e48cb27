#include "rows.contract.cuh"

PL_ENTRY(next)(/* as generated */) { body(rows); }
