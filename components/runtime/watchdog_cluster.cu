// The build `watchdog` for kernels whose CTAs form clusters.
#define PL_CLUSTERS 1
#include "watchdog.cu"
