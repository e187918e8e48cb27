// The device ABI of PipeLink: the types that relocations and ports are made of.
//
// Every field of Ring, NamedBarrier and Buffer is a link-time constant: the glue builds them from
// the placement, link-time optimisation folds them to immediates.  Components only pass them on.
// The structs have spare fields, so that a transfer invented later needs no recompilation.
#pragma once

#include <cstdint>

namespace pipelink {

/// A CUtensorMap, as the kernel receives it (CUDA driver API, cuTensorMapEncodeTiled).
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

/// How the two ends of a ring are joined.
enum RingKind : uint32_t {
  kLocalRing = 1,  // both ends in this CTA: full/empty mbarriers, data stays where it is
  kClusterRing = 2,  // a local ring whose copies reach other CTAs of the cluster, too
};

/// Set in Ring::peers where plain accesses are ordered by the barriers of other CTAs.
constexpr uint32_t kOrderedPeers = 1u << 16;

/// A multi-stage channel in shared memory (addresses of the shared window), or in tensor memory: then
/// `data` is the tensor-memory address of stage 0 and `stage_bytes` counts columns.
struct Ring {
  uint32_t kind;
  uint32_t data;         // stage 0
  uint32_t full;         // mbarrier of stage 0; the others follow, 8 bytes each
  uint32_t empty;        // likewise
  uint32_t stage_bytes;  // distance of two stages
  uint32_t stages;
  uint32_t site;         // who this end is, for the instrumented runtimes
  uint32_t peers;        // CTAs of the cluster that copies reach (glue.cuh); 0 = this one
  uint32_t shared[4];    // members that a group of CTAs gets alike (likewise); 0 = none
};

/// Where one end of a ring stands.  Cursors run on from work item to work item.
struct Cursor {
  uint32_t stage;
  uint32_t phase;  // parity of the current round
};

/// Where a CTA stands in its cluster: what schedules that serve clusters are given.
struct ClusterPlace {
  uint32_t x;
  uint32_t y;
};

/// A hardware named barrier under the id the linker gave it.
struct NamedBarrier {
  uint32_t id;
  uint32_t threads;
  uint32_t site;
  uint32_t reserved;
};

/// Private shared memory of a role.
struct Buffer {
  uint32_t address;  // shared window
  uint32_t bytes;
};

/// Whom a counter synchronises (PTX ISA, scopes).
enum Scope : uint32_t { kCtaScope = 0, kClusterScope = 1, kGpuScope = 2, kSysScope = 3 };

/// An array of counters in global memory; all are zero when a launch begins.
struct Counters {
  uint32_t* values;
  uint32_t arrivals;  // of one signal: every warp of the role that signals arrives once
  uint32_t scope;
  uint32_t site;
  uint32_t reserved[3];
};

}  // namespace pipelink
