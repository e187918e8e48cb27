// The device ABI of PipeLink: the types of relocations and ports.
//
// Every field of Ring, NamedBarrier and Buffer is a link-time constant: the glue builds them from
// the placement, and link-time optimization folds them to immediates.  Components only pass them on
// to the runtime.  The structs have reserved fields, so that a later kind of transfer does not
// force components to be recompiled.
#pragma once

#include <cstdint>

namespace pipelink {

/// A CUtensorMap as the kernel receives it (CUDA driver API, cuTensorMapEncodeTiled).
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

/// How far the copies of a ring reach.
enum RingKind : uint32_t {
  kLocalRing = 1,    // producer and consumer in this CTA: full/empty mbarriers, data stays in place
  kClusterRing = 2,  // a local ring whose copies also reach other CTAs of the cluster
};

/// Set in Ring::peers if the barriers of other CTAs order plain accesses.
constexpr uint32_t kOrderedPeers = 1u << 16;

/// A multi-stage channel in shared memory (addresses of the shared window) or in tensor memory:
/// then `data` is the tensor-memory address of stage 0 and `stage_bytes` counts columns.
struct Ring {
  uint32_t kind;         // RingKind
  uint32_t data;         // stage 0
  uint32_t full;         // mbarrier of stage 0; the others follow, 8 bytes each
  uint32_t empty;        // likewise
  uint32_t stage_bytes;  // distance of two stages
  uint32_t stages;
  uint32_t site;       // this endpoint's number in reports of the instrumented runtimes
  uint32_t peers;      // CTAs of the cluster that copies reach (glue.cuh); 0 = this one
  uint32_t shared[4];  // members that several CTAs receive alike (glue.cuh); 0 = none
};

/// The position of one endpoint of a ring.  It carries over from one work tile to the next.
struct Cursor {
  uint32_t stage;
  uint32_t phase;  // parity of the mbarrier phase: it flips when the cursor returns to stage 0
};

/// The position of a CTA in its cluster: an argument of tile schedulers that support clusters.
struct ClusterPlace {
  uint32_t x;
  uint32_t y;
};

/// A hardware named barrier with the id that the linker assigned.
struct NamedBarrier {
  uint32_t id;       // 1..15
  uint32_t threads;  // that arrive in one phase
  uint32_t site;
  uint32_t reserved;
};

/// Private shared memory of a role.
struct Buffer {
  uint32_t address;  // shared window
  uint32_t bytes;
};

/// The threads that a counter synchronizes (PTX ISA, scopes).
enum Scope : uint32_t { kCtaScope = 0, kClusterScope = 1, kGpuScope = 2, kSysScope = 3 };

/// An array of counters in global memory; all are zero when a launch begins.
struct Counters {
  uint32_t* values;
  uint32_t arrivals;  // of one signal: every warp of the signaling role arrives once
  uint32_t scope;     // Scope
  uint32_t site;
  uint32_t reserved[3];
};

}  // namespace pipelink
