// Operations on tensor memory, for targets that have it.  Compiled and audited, not yet run on
// hardware.
#pragma once

#include "operation.cuh"

#if defined(__CUDA_ARCH_FEAT_SM100_ALL)

namespace pipelink {
namespace runtime {

/// tcgen05.commit: one arrival on a barrier once the mma of the elected thread are complete.
__device__ __forceinline__ void commit_mma(uint32_t barrier) {
  if (elect()) {
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
        : "memory");
  }
  __syncwarp();
}

/// The address of a column for this warp: the upper half names the first lane of its position in
/// the warpgroup.
__device__ __forceinline__ uint32_t lanes_of(const Ring& ring, const Cursor& at, uint32_t thread,
                                             uint32_t first) {
  return stage_address(ring, at) + first + ((thread / 32 % 4 * 32) << 16);
}

}  // namespace runtime
}  // namespace pipelink

extern "C" {

__device__ void pl_tensor_mma(const Ring& accumulators, const Cursor& at, uint64_t a, uint64_t b,
                              uint32_t instruction, uint32_t accumulate) {
  if (pipelink::runtime::elect()) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}" ::"r"(
            pipelink::stage_address(accumulators, at)),
        "l"(a), "l"(b), "r"(instruction), "r"(accumulate)
        : "memory");
  }
  __syncwarp();
}

__device__ void pl_mma_commit_empty(const Ring& ring, const Cursor& at) {
  const OperationScope scope(Operation::kRelease, ring.site, at.stage, at.phase);
  pipelink::runtime::commit_mma(pipelink::runtime::empty_of(ring, at));
}

__device__ void pl_mma_commit_full(const Ring& ring, const Cursor& at) {
  const OperationScope scope(Operation::kCommit, ring.site, at.stage, at.phase);
  pipelink::runtime::commit_mma(pipelink::runtime::full_of(ring, at));
}

__device__ void pl_tensor_load_32(const Ring& ring, const Cursor& at, uint32_t thread,
                                  uint32_t first, float (&values)[32]) {
#define PL_F8(i)                                                                  \
  "=f"(values[i]), "=f"(values[i + 1]), "=f"(values[i + 2]), "=f"(values[i + 3]), \
      "=f"(values[i + 4]), "=f"(values[i + 5]), "=f"(values[i + 6]), "=f"(values[i + 7])
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : PL_F8(0), PL_F8(8), PL_F8(16), PL_F8(24)
      : "r"(pipelink::runtime::lanes_of(ring, at, thread, first))
      : "memory");
#undef PL_F8
}

__device__ void pl_tensor_store_32(const Ring& ring, const Cursor& at, uint32_t thread,
                                   uint32_t first, const float (&values)[32]) {
#define PL_F8(i)                                                                                  \
  "f"(values[i]), "f"(values[i + 1]), "f"(values[i + 2]), "f"(values[i + 3]), "f"(values[i + 4]), \
      "f"(values[i + 5]), "f"(values[i + 6]), "f"(values[i + 7])
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31};" ::PL_F8(0),
      PL_F8(8), PL_F8(16), PL_F8(24), "r"(pipelink::runtime::lanes_of(ring, at, thread, first))
      : "memory");
#undef PL_F8
}

__device__ void pl_tensor_await_load() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

__device__ void pl_tensor_await_store() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

__device__ void pl_tensor_fence_before() {
  const OperationScope scope(Operation::kFence, 0, 0, 2);
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

__device__ void pl_tensor_fence_after() {
  const OperationScope scope(Operation::kFence, 0, 0, 3);
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
}

#endif  // __CUDA_ARCH_FEAT_SM100_ALL
