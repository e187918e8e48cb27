"""Small objects for tests of compiling and linking: a component, a kernel, a cubin, a toolkit."""

from __future__ import annotations

import contextlib
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.load import load_contract
from pipelink_rules.link.link_inputs import LinkObject
from pipelink_rules.link.linker_log import LinkLog, read_log
from pipelink_rules.model.contract import Contract, NamedBarrier, Operation, Repeat, Role
from pipelink_rules.model.linked_kernel import Audit, BarrierSite
from pipelink_rules.model.placement import Placement, Warpgroup
from pipelink_rules.model.program import Instance, MegakernelSpec, Program, ProgramRole
from pipelink_rules.model.source_span import Expr, Span
from pipelink_rules.model.variant import BuildRecord, Variant, WeakSymbol
from pipelink_rules.toolkit.fatbin import FatbinImage
from pipelink_rules.toolkit.toolkit import Toolkit

DIGEST = "0123456789ab"  # replaces digests in golden texts
ENTRY = "demo"


def variant_of(folder: Path, **arguments: int | str) -> Variant:
    """Return the instantiated contract of a folder; its file name is relative."""
    path = next(folder.glob("*.contract.yaml"))
    with contextlib.suppress(ValueError):
        path = path.relative_to(Path.cwd())
    return bind(load_contract(str(path)), arguments)


def bare_variant(component: str, digest: str = DIGEST, file: str = "") -> Variant:
    """Return a variant without ports or roles."""
    contract = Contract(component, "1.0.0", "", ("sm_90a",), file=file)
    return Variant(contract, (), digest=digest)


def toolkit_of(**changes: Any) -> Toolkit:
    """Return a toolkit that does not exist."""
    base = Toolkit(
        root="/cuda",
        source="test",
        version="13.5.37",
        fingerprint="f" * 64,
        nvcc="/cuda/bin/nvcc",
        ptxas="/cuda/bin/ptxas",
        nvlink="/cuda/bin/nvlink",
        cicc="/cuda/nvvm/bin/cicc",
        cuobjdump="",
        nvdisasm="",
        nvvmpath="/cuda/nvvm",
        libraries="/cuda/lib64",
        includes=("/cuda/include",),
        libnvvm="/cuda/nvvm/lib64/libnvvm.so",
        nvjitlink="",
        host_compiler="/usr/bin/g++",
    )
    return replace(base, **changes)


def image(arch: str = "sm_90a", kind: str = "nvvm", **flags: str) -> FatbinImage:
    """Return one image of a fat binary."""
    values = {"fmad": "1", "ftz": "0", "prec_div": "1", "prec_sqrt": "1", **flags}
    return FatbinImage(kind, arch, tuple(sorted(values.items())) if kind == "nvvm" else ())


def link_object(
    component: str,
    *,
    images: tuple[FatbinImage, ...] | None = None,
    weak: tuple[WeakSymbol, ...] = (),
    compiler: str = "13.5.37",
    fingerprint: str = "f" * 64,
    objects: tuple[tuple[str, str], ...] = (),
    digest: str = DIGEST,
    folder: str = "",
) -> LinkObject:
    """Return an object with a sidecar, as `read_objects` does."""
    sidecar = f"{folder}{component}.contract.yaml"
    return LinkObject(
        path=f"{folder}{component}.fatbin",
        owner=component,
        images=images if images is not None else (image(),),
        variant=bare_variant(component, digest, sidecar),
        build=BuildRecord(compiler, fingerprint, objects=objects, weak=weak),
        weak=weak,
    )


def multiplier() -> Instance:
    """Return an instance whose two warpgroups alternate: each waits for the other."""
    ops = (Operation("sync", "turn"), Repeat(Expr("k"), (Operation("sync", "turn"),)))
    role = Role("mma", Expr("8"), body=ops)
    contract = replace(
        bare_variant("mma").contract,
        roles=(role,),
        named_barriers=(NamedBarrier("turn", ("mma",), Expr("256")),),
    )
    return Instance("mma", "//:mma", Variant(contract, (), digest=DIGEST))


def program_of_demo(span: Span | None = None) -> Program:
    """Return a megakernel with only the role that multiplies."""
    spec = MegakernelSpec(ENTRY, (), span=span)
    return Program(
        name=ENTRY,
        target="sm_90a",
        instances=(multiplier(),),
        connections=(),
        channels=(),
        roles=(ProgramRole("mma", (("mma", "mma"),), 8, 1, True, 24, 24, 24),),
        scheduler=("tiles", "next"),
        tensors=(),
        scalars=(),
        symbols=(),
        occupancy=1,
        cluster=(1, 1, 1),
        runtime="release",
        spec=spec,
    )


def placement_of_demo(**changes: Any) -> Placement:
    """Return a placement of one loader warpgroup with 40 registers and two with 232; barrier 1."""
    base = Placement(
        name=ENTRY,
        target="sm_90a",
        stages=(("load.ab", 4),),
        offsets=(("load.ab", 0),),
        barriers=(("load.ab", 196608),),
        shared_bytes=196672,
        bound_bytes=196672,
        named=(("mma.turn", 1),),
        warps=(("load", 0), ("mma", 4)),
        threads=384,
        entry_registers=168,
        setmaxnreg=True,
        warpgroups=(
            Warpgroup(0, ("load",), 40),
            Warpgroup(1, ("mma",), 232),
            Warpgroup(2, ("mma",), 232),
        ),
        occupancy=1,
        proved=True,
        solver="z3",
    )
    return replace(base, **changes)


def audit_of_demo(**changes: Any) -> Audit:
    """Return an audit that agrees with `placement_of_demo`."""
    base = Audit(
        entry=ENTRY,
        registers=168,
        stack_bytes=0,
        spill_stores=0,
        spill_loads=0,
        static_shared_bytes=0,
        instructions=640,
        calls=(),
        setmaxnreg=(40, 232),
        barrier_ids=((0, 1), (1, 2)),
        barrier_sites=(BarrierSite(0, "sync", 0, 1), BarrierSite(1, "sync", 256, 2)),
        region_registers=(("load", 12), ("mma", 154)),
        text_sha256="0" * 64,
    )
    return replace(base, **changes)


def log_of(text: str = "") -> LinkLog:
    """Return the log of a link that printed `text`."""
    return read_log(text, "nvlink 13.5.37", ("nvlink", "demo.fatbin", "-o", "demo.cubin"))


def cubin(
    kernels: dict[str, bytes],
    *,
    registers: dict[str, int] | None = None,
    stack: dict[str, int] | None = None,
    shared: dict[str, int] | None = None,
    reserved: bool = True,
) -> bytes:
    """Return an ELF file with code sections, function symbols and .nv.info, like those of ptxas."""
    names = list(kernels)
    sections: list[tuple[str, int, bytes, int, int, int]] = [("", 0, b"", 0, 0, 0)]

    def add(name: str, kind: int, data: bytes, size: int = -1, link: int = 0, info: int = 0) -> int:
        sections.append((name, kind, data, len(data) if size < 0 else size, link, info))
        return len(sections) - 1

    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    string_section = add(".strtab", 3, strings)
    text_sections = {name: add(f".text.{name}", 1, code) for name, code in kernels.items()}
    symbols = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for name in names:
        offset = strings.index(b"\0" + name.encode() + b"\0") + 1
        symbols += struct.pack(
            "<IBBHQQ", offset, 0x12, 0, text_sections[name], 0, len(kernels[name])
        )
    add(".symtab", 2, symbols, link=string_section, info=1)
    attributes = b""
    for code, values in ((0x2F, registers or {}), (0x12, stack or {})):
        for name, value in values.items():
            attributes += struct.pack("<BBHII", 4, code, 8, names.index(name) + 1, value)
    add(".nv.info", 0x70000000, attributes)
    for name, size in (shared or {}).items():
        add(f".nv.shared.{name}", 8, b"", size)
    if reserved:
        add(".nv.shared.reserved.0", 8, b"", 0)
    header_names = b"\0" + b"".join(row[0].encode() + b"\0" for row in sections[1:])
    header_names += b".shstrtab\0"
    names_section = add(".shstrtab", 3, header_names)
    body, rows = b"", b""
    for name, kind, data, size, link, info in sections:
        at = 64 + len(body)
        body += data
        where = header_names.index(b"\0" + name.encode() + b"\0") + 1 if name else 0
        entry = 24 if kind == 2 else 0  # bytes of a symbol
        rows += struct.pack("<IIQQQQIIQQ", where, kind, 0, 0, at, size, link, info, 1, entry)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(ident, 2, 190, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(sections), names_section),
    )
    return header + body + rows
