"""PL06xx: types, layouts and copies."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL0601",
        "layouts-differ",
        "Two ends that place the elements of a tile differently read each other's data scrambled.",
        "CUDA driver API, cuTensorMapEncodeTiled: swizzle; layouts are compared as maps from "
        "coordinates to bytes",
        "check",
    ),
    Code(
        "PL0602",
        "dtypes-differ",
        "Bits of one type that are read as another are no error to the hardware.",
        "",
        "check",
    ),
    Code(
        "PL0604",
        "swizzle-alignment",
        "A swizzle is a function of the address: a tile at another alignment is scrambled.",
        "PTX ISA, tensor swizzling modes: 1024, 512 and 256 bytes; 128 for tensor copies without a"
        " swizzle",
        "check",
    ),
    Code(
        "PL0605",
        "tensor-box",
        "A box that the copy engine cannot move is refused only at launch.",
        "CUDA driver API, cuTensorMapEncodeTiled: the inner row of a box is a multiple of 16 bytes",
        "check",
    ),
    Code(
        "PL0606",
        "tensor-strides",
        "A tensor whose rows start anywhere is refused at launch, for some shapes only.",
        "CUDA driver API, cuTensorMapEncodeTiled: global strides are multiples of 16 bytes; PTX "
        "ISA, cp.async.bulk: so are addresses",
        "check",
    ),
    Code(
        "PL0607",
        "copied-bytes",
        "Copies that bring more or less than the memory they fill leave old data or overwrite "
        "others.",
        "CUDA driver API, cuTensorMapEncodeTiled: a copy moves a whole box, also at the edges",
        "check",
    ),
    Code(
        "PL0608",
        "fragments-differ",
        "Threads that hold other elements than the reader thinks give wrong results.",
        "PTX ISA, wgmma: register fragment of the accumulator, 64 rows per warpgroup",
        "check",
    ),
    Code(
        "PL0609",
        "shapes-differ",
        "Two ends with other extents read beyond each other's data.",
        "",
        "check",
    ),
    Code(
        "PL0610",
        "tiles-differ",
        "The tiles of an item lie in the order of the contract: both ends must name the same ones.",
        "",
        "check",
    ),
    Code(
        "PL0611",
        "pending-groups",
        "A fragment that is passed on while wgmma still writes it is read too early.",
        "PTX ISA, wgmma.mma_async: the accumulator may be accessed only after wgmma.wait_group",
        "check",
    ),
    Code(
        "PL0612",
        "bulk-size",
        "A bulk copy of another size traps or overwrites the next stage.",
        "PTX ISA, cp.async.bulk: size and addresses are multiples of 16 bytes",
        "check",
    ),
    Code(
        "PL0613",
        "scalars-differ",
        "One number of the launch cannot be of two types.",
        "",
        "check",
    ),
    Code(
        "PL0614",
        "proxy-clause",
        "A port that names another proxy than it uses hides where a fence is needed.",
        "PTX ISA, memory consistency model, proxies: wgmma and bulk copies use the asynchronous "
        "proxy",
        "check",
    ),
)
