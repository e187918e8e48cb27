// The build `record` for kernels whose CTAs form clusters.
#define PL_CLUSTERS 1
#include "record.cu"
