#include "deeper.cuh"
