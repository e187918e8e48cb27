// The build `jitter` for kernels whose CTAs form clusters.
#define PL_CLUSTERS 1
#include "jitter.cu"
