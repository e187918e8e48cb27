#include "scale.cuh"
