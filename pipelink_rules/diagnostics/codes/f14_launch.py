"""PL14xx: launching a linked megakernel."""

from pipelink_rules.diagnostics.code import Code

_TENSOR_MAP = "CUDA driver API, cuTensorMapEncodeTiled: base, strides, box and rank of a tiled map"

CODES: tuple[Code, ...] = (
    Code(
        "PL1400",
        "manifest-without-its-cubin",
        "A manifest that describes another cubin packs parameters the entry does not expect.",
        "",
        "launch",
    ),
    Code(
        "PL1401",
        "device-not-supported",
        "Machine code runs on the architecture it was linked for and on no other.",
        "CUDA programming guide, binary compatibility: same major version, later minor version; "
        "code for an 'a' architecture on exactly that one",
        "launch",
    ),
    Code(
        "PL1402",
        "argument-name",
        "A missing, unknown or repeated argument would leave a parameter of the entry unset.",
        "",
        "launch",
    ),
    Code(
        "PL1403",
        "not-a-gpu-array",
        "The megakernel reads and writes memory of the GPU, described by DLPack or by the CUDA "
        "array interface.",
        "",
        "launch",
    ),
    Code(
        "PL1404",
        "array-dtype",
        "Components are compiled for one dtype; bytes of another would be read as numbers of it.",
        "",
        "launch",
    ),
    Code(
        "PL1405",
        "array-shape",
        "Shapes give the sizes M, N, K, ...; two arrays that give different ones cannot both be "
        "right.",
        "",
        "launch",
    ),
    Code(
        "PL1406",
        "array-not-contiguous",
        "Addresses are computed from the shape alone, so an array has no gaps and is row-major.",
        "",
        "launch",
    ),
    Code(
        "PL1407",
        "array-misaligned",
        "Vector accesses and bulk copies need their base address aligned.",
        "CUDA programming guide, bulk asynchronous copies: 16 bytes",
        "launch",
    ),
    Code(
        "PL1408",
        "array-on-another-device",
        "A launch runs on the device of the current context and reaches its memory only.",
        "",
        "launch",
    ),
    Code(
        "PL1409",
        "size-out-of-range",
        "Contracts state which sizes they handle; outside them results are undefined.",
        "",
        "launch",
    ),
    Code(
        "PL1410",
        "precondition",
        "A component promises its result under a condition that this call does not meet.",
        "",
        "launch",
    ),
    Code(
        "PL1411",
        "scalar-argument",
        "A scalar is passed by value, as a number of the dtype that the component declares.",
        "",
        "launch",
    ),
    Code(
        "PL1412",
        "output-not-allocatable",
        "An output may be left out only where an allocator is known that can make it.",
        "",
        "launch",
    ),
    Code(
        "PL1413",
        "not-a-stream",
        "A launch is ordered by a CUDA stream; anything else has no order.",
        "",
        "launch",
    ),
    Code(
        "PL1414",
        "driver-error",
        "The CUDA driver refused a call, often because of work launched before.",
        "CUDA driver API, error codes",
        "launch",
    ),
    Code(
        "PL1415",
        "tensor-map-impossible",
        "Not every array can be described to the tensor memory accelerator.",
        _TENSOR_MAP,
        "launch",
    ),
    Code(
        "PL1416",
        "hang",
        "A role waited longer than the watchdog's limit: the megakernel would have hung.",
        "",
        "launch",
    ),
    Code(
        "PL1417",
        "no-driver",
        "Running needs a GPU, its driver, and the Python bindings of the driver.",
        "",
        "launch",
    ),
    Code(
        "PL1418",
        "output-read-only",
        "An array that its owner marked read-only must not be written.",
        "DLPack flags; CUDA array interface, the second entry of `data`",
        "launch",
    ),
    Code(
        "PL1419",
        "other-runtime",
        "Tracing, recording and delaying need the build of the device runtime that does it.",
        "",
        "launch",
    ),
    Code(
        "PL1420",
        "no-room-for-the-grid",
        "A kernel that waits for its own CTAs needs room for at least one of them at once.",
        "CUDA driver API, cuOccupancyMaxActiveBlocksPerMultiprocessor",
        "launch",
    ),
)
