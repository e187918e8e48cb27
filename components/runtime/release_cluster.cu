// The build `release` for kernels whose CTAs form clusters.
#define PL_CLUSTERS 1
#include "release.cu"
