// Waits with a limit: a longer wait writes which endpoint waits, for which phase or count, and the
// state of the barrier or counter to a report in host memory, and traps.
#pragma once

#include "cluster.cuh"
#include "counters.cuh"

extern "C" {
/// Host-mapped report of 16 words, set by the launcher before the launch; 0 = report nothing.
__device__ unsigned long long pl_watchdog_report;
/// Clock cycles a wait may last; set by the launcher.
__device__ unsigned long long pl_watchdog_limit = 4000000000ull;
}

namespace pipelink {
namespace runtime {

constexpr uint32_t kMagic = 0x504c5744;  // "PLWD": the report is complete

/// Words: magic, site, operation, stage, phase, block, thread, mbarrier low, high, kilocycles.  For
/// a counter its index replaces the stage, the awaited count the phase, its value the mbarrier.
__device__ __noinline__ void report_and_trap(uint32_t site, uint32_t operation, uint32_t stage,
                                             uint32_t phase, uint64_t state, uint64_t waited) {
  volatile uint32_t* report = reinterpret_cast<volatile uint32_t*>(pl_watchdog_report);
  if (report != nullptr &&
      atomicCAS_system(reinterpret_cast<uint32_t*>(pl_watchdog_report) + 10, 0u, 1u) == 0u) {
    report[1] = site;
    report[2] = operation;
    report[3] = stage;
    report[4] = phase;
    report[5] = blockIdx.x;
    report[6] = threadIdx.x;
    report[7] = static_cast<uint32_t>(state);
    report[8] = static_cast<uint32_t>(state >> 32);
    report[9] = static_cast<uint32_t>(waited >> 10);
    __threadfence_system();
    report[0] = kMagic;
    __threadfence_system();
  }
  // A trap ends the context for all threads: every other thread waits (0.3 s) until the reporter
  // has finished, whose stores queue behind their attempts.
  for (int i = 0; i < 1000; ++i) __nanosleep(300000);
  __trap();
}

__device__ __forceinline__ bool try_parity(uint32_t barrier, uint32_t parity, const Ring& ring) {
  uint32_t done;
#if PL_CLUSTERS
  if (ordered(ring)) {
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    return done != 0;
  }
#endif
  asm volatile(
      "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ __forceinline__ void wait_parity(uint32_t barrier, uint32_t parity, const Ring& ring,
                                            const Cursor& at, uint32_t operation) {
  // The clock starts before the first attempt: that one already sleeps in hardware.
  const long long start = clock64();
  bool done;
  do {
    done = try_parity(barrier, parity, ring);
    const unsigned long long waited = clock64() - start;
    if (waited > pl_watchdog_limit) {
      uint64_t state;
      asm volatile("ld.shared.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
      report_and_trap(ring.site, operation, at.stage, at.phase, state, waited);
    }
  } while (!done);
}

__device__ __forceinline__ void wait_named(const NamedBarrier& barrier) {
  // A hardware barrier cannot be polled: its hang shows at the mbarriers that depend on it.
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier.id), "r"(barrier.threads)
               : "memory");
}

__device__ __forceinline__ void wait_counter(const Counters& counters, uint32_t index,
                                             uint32_t arrivals) {
  const long long start = clock64();
  uint32_t value;
  while ((value = read_counter(counters.values + index, counters.scope)) < arrivals) {
    const unsigned long long waited = clock64() - start;
    if (waited > pl_watchdog_limit) {
      report_and_trap(counters.site, 4, index, arrivals, value, waited);
    }
  }
}

}  // namespace runtime
}  // namespace pipelink
