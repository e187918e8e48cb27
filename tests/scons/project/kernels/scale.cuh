#include <table.cuh>
inline float scaled(float x) { return x * kFactor; }
