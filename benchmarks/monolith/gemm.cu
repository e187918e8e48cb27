// An independent baseline: a bf16 GEMM for Hopper, written by hand in one piece.
//
// C[M, N] = A[M, K] x B[N, K]^T, f32 accumulators, bf16 result.  Nothing here comes from PipeLink:
// every offset, barrier, warp number and register count is a literal, as such kernels are usually
// written.  Persistent CTAs of one producer warpgroup and two consumer warpgroups; tiles of
// 128 x 256 x 64, four stages; each consumer warpgroup multiplies 64 x 256 with wgmma m64n256k16
// and stores through shared memory by tensor copies.  With -DCLUSTER=2 two CTAs, one above the other in
// C, share the tile of B: each loads half of it for both.
//
//   nvcc -O3 -std=c++17 -cubin -gencode arch=compute_90a,code=sm_90a [-DCLUSTER=2] gemm.cu
//
// Parameters: tensor maps of A (box 128 x 64), B (box 256 / CLUSTER x 64) and C (box 16 x 64), all
// with the 128-byte swizzle, then K, M, N.
#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>

#ifndef CLUSTER
#define CLUSTER 1
#endif

namespace {

constexpr int kTileM = 128, kTileN = 256, kTileK = 64, kStages = 4;
constexpr int kRowBytes = kTileK * 2;        // one swizzle span
constexpr int kBytesA = kTileM * kRowBytes;  // 16 KiB
constexpr int kBytesB = kTileN * kRowBytes;  // 32 KiB
constexpr int kBytesStage = kBytesA + kBytesB;
constexpr int kStagingWarp = 2 * 16 * kRowBytes;    // two buffers of 16 rows x 64 columns
constexpr int kStaging = kStages * kBytesStage;     // 8 warps x 4 KiB follow the ring
constexpr int kFull = kStaging + 8 * kStagingWarp;  // mbarriers: full, then empty
constexpr int kEmpty = kFull + 8 * kStages;
constexpr int kGroup = 16 / CLUSTER;  // rows of tiles that are walked together

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void mbarrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// One arrival on the barrier at this address of the CTA with that rank in the cluster.
__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier, uint32_t rank) {
#if CLUSTER == 1
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
#else
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(barrier),
      "r"(rank)
      : "memory");
#endif
}

__device__ __forceinline__ void load_tile(uint32_t target, const CUtensorMap* map, uint32_t barrier,
                                          int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::"r"(target),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}

#if CLUSTER > 1
// The same tile to the same place in both CTAs of the cluster; each counts it on its own barrier.
__device__ __forceinline__ void load_tile_for_both(uint32_t target, const CUtensorMap* map,
                                                   uint32_t barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(target),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(static_cast<uint16_t>(3))
      : "memory");
}
#endif

__device__ __forceinline__ void store_tile(const CUtensorMap* map, uint32_t source, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];\n"
      "cp.async.bulk.commit_group;" ::"l"(map),
      "r"(source), "r"(x), "r"(y)
      : "memory");
}

template <int Pending>
__device__ __forceinline__ void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

// K-major operand, rows of 128 bytes under the 128-byte swizzle, 1024 bytes from 8 rows to the next.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | static_cast<uint64_t>(1) << 16 |
         static_cast<uint64_t>(1024 >> 4) << 32 | static_cast<uint64_t>(1) << 62;
}

__device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b, int accumulate) {
#define F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F16(i) F4(i), F4(i + 4), F4(i + 8), F4(i + 12)
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127"
      "}, %128, %129, p, 1, 1, 0, 0;\n"
      "}"
      : F16(0), F16(16), F16(32), F16(48), F16(64), F16(80), F16(96), F16(112)
      : "l"(a), "l"(b), "r"(accumulate));
#undef F16
#undef F4
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ __forceinline__ void store_matrices(uint32_t address, uint32_t a, uint32_t b, uint32_t c,
                                               uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

__device__ __forceinline__ uint32_t cluster_rank() {
#if CLUSTER == 1
  return 0;
#else
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
#endif
}

__device__ __forceinline__ void synchronize_all() {
#if CLUSTER == 1
  __syncthreads();
#else
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
#endif
}

// Tiles of C in groups of kGroup rows (of clusters), column by column within a group: the CTAs that
// run at one time then cover a block of C that is about square, and share A and B in L2.
struct Tiles {
  int rows, columns, rank;

  __device__ __forceinline__ Tiles(int m, int n, int rank)
      : rows((m + kTileM * CLUSTER - 1) / (kTileM * CLUSTER)),
        columns((n + kTileN - 1) / kTileN),
        rank(rank) {}
  __device__ __forceinline__ int count() const { return rows * columns; }
  __device__ __forceinline__ void at(int tile, int& m, int& n) const {
    const int group = tile / (kGroup * columns), first = group * kGroup;
    const int height = min(rows - first, kGroup), inside = tile - first * columns;
    m = ((first + inside % height) * CLUSTER + rank) * kTileM;
    n = inside / height * kTileN;
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
    monolith_gemm(const __grid_constant__ CUtensorMap map_a,
                  const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_c, int k_extent, int m_extent,
                  int n_extent) {
  extern __shared__ __align__(1024) uint8_t memory[];
  const uint32_t shared = shared_address(memory);
  const uint32_t rank = cluster_rank();
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(shared + kFull + 8 * stage, 1);
      mbarrier_init(shared + kEmpty + 8 * stage, 2 * CLUSTER);  // consumer warpgroups
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map_a) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map_b) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map_c) : "memory");
  }
  synchronize_all();

  const Tiles tiles(m_extent, n_extent, rank);
  const int blocks = (k_extent + kTileK - 1) / kTileK;
  const int first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;
  int stage = 0;
  uint32_t phase = 0;

  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      for (int tile = first; tile < tiles.count(); tile += step) {
        int m, n;
        tiles.at(tile, m, n);
        for (int block = 0; block < blocks; ++block) {
          const uint32_t full = shared + kFull + 8 * stage;
          const uint32_t a = shared + stage * kBytesStage, b = a + kBytesA;
          mbarrier_wait(shared + kEmpty + 8 * stage, phase ^ 1);
          mbarrier_expect(full, kBytesStage);
          load_tile(a, &map_a, full, block * kTileK, m);
#if CLUSTER == 1
          load_tile(b, &map_b, full, block * kTileK, n);
#else
          load_tile_for_both(b + rank * (kBytesB / 2), &map_b, full, block * kTileK,
                             n + static_cast<int>(rank) * (kTileN / 2));
#endif
          if (++stage == kStages) {
            stage = 0;
            phase ^= 1;
          }
        }
      }
    }
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int consumer = warpgroup - 1;
    const uint32_t warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    const uint32_t staging = shared + kStaging + (consumer * 4 + warp) * kStagingWarp;
    // stmatrix: lane l names row l % 8 of matrix l / 8; matrices are (upper, lower) x two columns.
    const uint32_t row = (lane & 7) + (lane & 8), half = lane >> 4;
    const bool releases = lane == 0 && warp < CLUSTER;  // warp w tells the CTA of rank w
    uint32_t buffer = 0;
    for (int tile = first; tile < tiles.count(); tile += step) {
      int m, n;
      tiles.at(tile, m, n);
      float acc[128];
      int last = 0;
      for (int block = 0; block < blocks; ++block) {
        mbarrier_wait(shared + kFull + 8 * stage, phase);
        const uint32_t a = shared + stage * kBytesStage;
        const uint64_t left = descriptor(a + consumer * 64 * kRowBytes);
        const uint64_t right = descriptor(a + kBytesA);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step16 = 0; step16 < kTileK / 16; ++step16) {
          multiply(acc, left + 2 * step16, right + 2 * step16, (block | step16) != 0);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (block > 0 && releases) mbarrier_arrive(shared + kEmpty + 8 * last, warp);
        last = stage;
        if (++stage == kStages) {
          stage = 0;
          phase ^= 1;
        }
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (releases) mbarrier_arrive(shared + kEmpty + 8 * last, warp);

#pragma unroll
      for (int chunk = 0; chunk < kTileN / 64; ++chunk) {
        if (lane == 0) wait_stores_read<1>();
        __syncwarp();
        const uint32_t target = staging + buffer * (kStagingWarp / 2);
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
          const float* v = acc + chunk * 32 + j * 4;
          store_matrices(target + row * kRowBytes + (((j + half) ^ (row & 7)) << 4),
                         pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]));
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0) {
          store_tile(&map_c, target, n + chunk * 64,
                     m + consumer * 64 + static_cast<int>(warp) * 16);
        }
        buffer ^= 1;
      }
    }
    if (lane == 0) wait_stores_read<0>();
    __syncwarp();
  }
#if CLUSTER > 1
  synchronize_all();  // no CTA exits while the other one may still arrive here
#endif
}
