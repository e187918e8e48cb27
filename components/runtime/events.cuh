// The event buffers of `trace` and `record`: a row of 16-byte events for every warp, in memory of
// the launcher.
#pragma once

#include "operation.cuh"

namespace pipelink {
namespace runtime {

/// One operation.  `what` is (operation + 1) | stage << 8 | site << 16, never 0.
struct alignas(16) Event {
  uint32_t what;
  uint32_t value;  // bytes, offset, phase, pending groups: what the operation was called with
  uint32_t begin;  // clock; 0 in a recording
  uint32_t end;
};

/// What the launcher writes before a launch; all zero = record nothing.
struct alignas(16) EventBuffers {
  unsigned long long heads;   // one Head a row
  unsigned long long events;  // `capacity` events a row
  uint32_t capacity;
  uint32_t ctas;  // the first CTAs, up to this number, are recorded
  uint32_t reserved[2];
};

/// How far a warp is, and when it started.
struct alignas(16) Head {
  uint32_t count;  // operations, including those that did not fit
  uint32_t sm;
  uint32_t start_clock;
  uint32_t start_ns;  // low half of the global timer
};

__device__ __forceinline__ uint32_t clock_now() {
  uint32_t now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
  return now;
}

__device__ __forceinline__ uint32_t what_of(Operation operation, uint32_t site, uint32_t stage) {
  return (operation + 1) | stage << 8 | site << 16;
}

/// Appends one event to the row of this warp, whose elected lane calls it.
__device__ __forceinline__ void write_event(const EventBuffers& buffers, const Event& event) {
  const uint32_t row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  Head* head = reinterpret_cast<Head*>(buffers.heads) + row;
  const uint32_t count = head->count;
  if (count == 0) {
    uint32_t sm, start;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(start)::"memory");
    head->sm = sm;
    head->start_clock = clock_now();
    head->start_ns = start;
  }
  head->count = count + 1;
  if (count < buffers.capacity) {
    Event* events = reinterpret_cast<Event*>(buffers.events);
    const uint64_t place = static_cast<uint64_t>(row) * buffers.capacity + count;
    reinterpret_cast<uint4*>(events)[place] =
        make_uint4(event.what, event.value, event.begin, event.end);
  }
}

/// Appends one event to the row of this warp; called by the whole warp.  Only this warp writes the
/// row, always from the same lane, so plain accesses are in order.
__device__ __forceinline__ void append(const EventBuffers& buffers, const Event& event) {
  if (elect() && blockIdx.x < buffers.ctas) write_event(buffers, event);
  __syncwarp();
}

}  // namespace runtime
}  // namespace pipelink
