// The build `trace` for kernels whose CTAs form clusters.
#define PL_CLUSTERS 1
#include "trace.cu"
