// Waits without a limit: those of the release build and of `trace`.
#pragma once

#include "cluster.cuh"
#include "counters.cuh"

namespace pipelink {
namespace runtime {

__device__ __forceinline__ void wait_parity(uint32_t barrier, uint32_t parity, const Ring& ring,
                                            const Cursor&, uint32_t) {
#if PL_CLUSTERS
  if (ordered(ring)) {
    asm volatile(
        "{.reg .pred done;\n"
        "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;}" ::"r"(barrier),
        "r"(parity)
        : "memory");
    return;
  }
#endif
  asm volatile(
      "{.reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void wait_named(const NamedBarrier& barrier) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier.id), "r"(barrier.threads)
               : "memory");
}

__device__ __forceinline__ void wait_counter(const Counters& counters, uint32_t index,
                                             uint32_t arrivals) {
  while (read_counter(counters.values + index, counters.scope) < arrivals) {
  }
}

}  // namespace runtime
}  // namespace pipelink
