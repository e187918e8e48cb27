#include "scale.contract.cuh"
