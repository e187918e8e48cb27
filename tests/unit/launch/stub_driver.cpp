// A libcuda.so.1 with the calls of a launch and no GPU behind them: lets the real Python bindings
// be tested anywhere.  What is encoded and launched is written to the file named by STUB_LOG.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using Result = int;

static std::FILE* log_file() {
  static std::FILE* file = std::getenv("STUB_LOG") ? std::fopen(std::getenv("STUB_LOG"), "w") : nullptr;
  return file;
}

template <class... Values> static void note(const char* format, Values... values) {
  if (auto* file = log_file()) std::fprintf(file, format, values...), std::fflush(file);
}

static Result ok() { return 0; }
static Result current(void** context) { return *context = (void*)0x1000, 0; }
static Result device(int* found) { return *found = 0, 0; }
static Result device_of(int* found, int ordinal) { return *found = ordinal, 0; }
static Result name(char* text, int length, int) { return std::strncpy(text, "Stub H200", length), 0; }
static Result attribute(int* value, int which, int) {
  return *value = which == 75 ? 9 : which == 16 ? 132 : 0, 0;
}
static Result load(void** library, const char* code, void*, void*, unsigned, void*, void*, unsigned) {
  note("load %.3s\n", code + 1);
  return *library = (void*)0x2000, 0;
}
static Result kernel(void** found, void*, const char* entry) {
  note("kernel %s\n", entry);
  return *found = (void*)0x3000, 0;
}
static Result function(void** found, void*) { return *found = (void*)0x4000, 0; }
static Result set(void*, int which, int value) { return note("set %d %d\n", which, value), 0; }
static Result global(std::uint64_t* found, std::size_t* bytes, void*, const char* symbol) {
  note("global %s\n", symbol);
  return *found = 0x5000, bytes ? (*bytes = 8, 0) : 0;
}
static Result host_alloc(void** found, std::size_t bytes, unsigned flags) {
  return note("host %zu flags %u\n", bytes, flags), *found = std::calloc(1, bytes), 0;
}
static Result host_device(std::uint64_t* found, void*, unsigned) { return *found = 0xd000, 0; }
static Result copy(std::uint64_t target, const void* source, std::size_t bytes) {
  note("copy %#llx <- %#llx, %zu\n", (unsigned long long)target,
       *(const unsigned long long*)source, bytes);
  return 0;
}
static Result pointer_attribute(void* data, int, std::uint64_t) { return *(int*)data = 0, 0; }
static Result exchange(int* mode) { return *mode = 0, 0; }
static Result error_text(int, const char** text) { return *text = "STUB", 0; }
static Result encode(void* map, int dtype, std::uint32_t rank, std::uint64_t address,
                     const std::uint64_t* extents, const std::uint64_t* strides,
                     const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                     int swizzle, int promotion, int fill) {
  if (reinterpret_cast<std::uintptr_t>(map) % 64) return 1;
  std::memset(map, 0xab, 128);
  note("map %d %#llx [%llu %llu] %llu [%u %u] %u %d %d %d %d\n", dtype, (unsigned long long)address,
       (unsigned long long)extents[0], (unsigned long long)extents[rank - 1],
       (unsigned long long)strides[0], box[0], box[rank - 1], steps[0], interleave, swizzle,
       promotion, fill);
  return 0;
}
static Result launch(void* entry, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                     unsigned, unsigned shared, void* stream, void** parameters, void**) {
  note("launch %p %u %u %u stream %p N %d\n", entry, grid, block, shared, stream,
       *(int*)parameters[7]);
  return 0;
}
static Result launch_config(const unsigned* config, void* entry, void**, void**) {
  const unsigned count = *(const unsigned*)((const char*)config + 48);
  note("launch %p %u %u %u with %u attributes\n", entry, config[0], config[3], config[6], count);
  const char* attributes = *(const char* const*)((const char*)config + 40);
  for (unsigned i = 0; i < count; ++i)  // 72 bytes each: id, 4 bytes of padding, value
    note("attribute %d = %d\n", *(const int*)(attributes + 72 * i),
         *(const int*)(attributes + 72 * i + 8));
  return 0;
}
static Result allocate(std::uint64_t* found, std::size_t bytes) {
  return note("allocate %zu\n", bytes), *found = 0x60000, 0;
}
static Result clear(std::uint64_t target, unsigned value, std::size_t words, void* stream) {
  note("clear %#llx = %u, %zu, stream %p\n", (unsigned long long)target, value, words, stream);
  return 0;
}
static Result resident(int* blocks, void* entry, int threads, std::size_t shared) {
  return note("resident %p %d %zu\n", entry, threads, shared), *blocks = 1, 0;
}
static Result capture(void*, int* status, std::uint64_t* id, void**, const void***, const void***,
                      std::size_t*) {
  return *status = 0, id ? (*id = 0, 0) : 0;
}

static Result clusters(int* found, void*, const unsigned* config) {
  return note("clusters in a grid of %u\n", config[0]), *found = 66, 0;
}

static const struct {
  const char* name;
  void* address;
} table[] = {
    {"cuInit", (void*)ok},
    {"cuCtxGetCurrent", (void*)current},
    {"cuCtxSetCurrent", (void*)ok},
    {"cuCtxGetDevice", (void*)device},
    {"cuCtxSynchronize", (void*)ok},
    {"cuStreamSynchronize", (void*)ok},
    {"cuDeviceGet", (void*)device_of},
    {"cuDeviceGetName", (void*)name},
    {"cuDeviceGetAttribute", (void*)attribute},
    {"cuDevicePrimaryCtxRetain", (void*)current},
    {"cuLibraryLoadData", (void*)load},
    {"cuLibraryGetKernel", (void*)kernel},
    {"cuLibraryGetGlobal", (void*)global},
    {"cuKernelGetFunction", (void*)function},
    {"cuFuncSetAttribute", (void*)set},
    {"cuMemHostAlloc", (void*)host_alloc},
    {"cuMemHostGetDevicePointer", (void*)host_device},
    {"cuMemcpyHtoD", (void*)copy},
    {"cuPointerGetAttribute", (void*)pointer_attribute},
    {"cuThreadExchangeStreamCaptureMode", (void*)exchange},
    {"cuGetErrorName", (void*)error_text},
    {"cuGetErrorString", (void*)error_text},
    {"cuTensorMapEncodeTiled", (void*)encode},
    {"cuLaunchKernel", (void*)launch},
    {"cuLaunchKernelEx", (void*)launch_config},
    {"cuOccupancyMaxActiveClusters", (void*)clusters},
    {"cuMemAlloc", (void*)allocate},
    {"cuMemsetD32Async", (void*)clear},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", (void*)resident},
    {"cuStreamGetCaptureInfo", (void*)capture},
};

extern "C" Result cuGetProcAddress_v2(const char* symbol, void** found, int, std::uint64_t,
                                      int* status) {
  if (status) *status = 0;
  if (!std::strcmp(symbol, "cuGetProcAddress")) return *found = (void*)cuGetProcAddress_v2, 0;
  for (const auto& entry : table)
    if (!std::strcmp(entry.name, symbol)) return *found = entry.address, 0;
  return *found = nullptr, 500;
}
extern "C" Result cuGetProcAddress(const char* symbol, void** found, int version, std::uint64_t flags) {
  return cuGetProcAddress_v2(symbol, found, version, flags, nullptr);
}
extern "C" Result cuDriverGetVersion(int* version) { return *version = 13000, 0; }
extern "C" Result cuInit(unsigned) { return 0; }
