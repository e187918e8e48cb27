"""Command lines of the tools: toolkit and unit -> argv, without running or reading anything.

Paths are relative to the folder in which the compiler runs (the repository root): intermediate
code contains the source's path, and a relative one is the same on every machine.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pipelink_rules.contract.codegen_flags import FLAG_DEFAULTS
from pipelink_rules.toolkit.toolkit import Toolkit

# Keeps always-inlined helpers in the listing: objects share them by name like all inline functions,
# and the front end would otherwise remove them.
_SHOW_INLINE = ("-Dalways_inline=unused", "-D__always_inline__=__unused__")


@dataclass(frozen=True)
class Unit:
    """One translation unit and all inputs of its code."""

    source: str
    arch: str  # "sm_90a"
    includes: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()  # "NAME" or "NAME=value"
    flags: tuple[str, ...] = ()  # code-generation flags of the variant
    options: tuple[str, ...] = ()  # harmless ones
    strict: bool = True  # warnings are errors


def number(arch: str) -> str:
    """Return `sm_90a` -> `90a`."""
    return arch.removeprefix("sm_")


def flag_arguments(flags: Iterable[str]) -> list[str]:
    """Return Variant.flags as compiler arguments: all four are always explicit."""
    values = dict(FLAG_DEFAULTS)
    for flag in flags:
        name, _, value = flag.partition("=")
        values[name] = value == "true"
    return [f"--{name}={str(value).lower()}" for name, value in sorted(values.items())]


def _common(toolkit: Toolkit, unit: Unit) -> list[str]:
    standard = [] if any(option.startswith("-std=") for option in unit.options) else ["-std=c++17"]
    argv = [toolkit.nvcc, *standard, "-O3", "-rdc=true", "--expt-relaxed-constexpr"]
    argv += flag_arguments(unit.flags)
    argv += ["-Werror=all-warnings"] if unit.strict else []
    argv += list(unit.options)
    argv += [f"-D{define}" for define in unit.defines]
    argv += [f"-I{folder}" for folder in unit.includes]
    return argv


def fatbin_argv(
    toolkit: Toolkit, unit: Unit, out: str, depfile: str = "", keep: str = ""
) -> list[str]:
    """Compile link-time code of one architecture, device only: a host pass triples the time.

    keep: the folder that receives `<source stem>.ptx`, from the same run of the front end, which
    takes most of the time: the shadow that the scans read.  The object then contains that PTX, too;
    linkers use the link-time code.
    """
    arch = number(unit.arch)
    # Not -arch=sm_90a: that compiles a second time for plain compute_90, which has no wgmma.
    code = f"[compute_{arch},lto_{arch}]" if keep else f"lto_{arch}"
    argv = [*_common(toolkit, unit), "--fatbin", "-gencode", f"arch=compute_{arch},code={code}"]
    argv += ["-MMD", "-MF", depfile] if depfile else []
    argv += ["--keep", "--keep-dir", keep] if keep else []
    return [*argv, unit.source, "-o", out]


def listing_argv(toolkit: Toolkit, unit: Unit, out: str, *, show_inline: bool = True) -> list[str]:
    """Compile unoptimized PTX: one function for each of the source, the inlined ones included."""
    arch = number(unit.arch)
    argv = [*_common(toolkit, unit), "-ptx", "-gencode", f"arch=compute_{arch},code=compute_{arch}"]
    argv += ["-Xcicc", "-O0", *(_SHOW_INLINE if show_inline else ())]
    return [*argv, unit.source, "-o", out]


def cubin_argv(toolkit: Toolkit, unit: Unit, out: str, ptxas: Iterable[str] = ()) -> list[str]:
    """Compile a cubin from one unit, without link-time optimization: the native twin."""
    arch = number(unit.arch)
    argv = [option for option in _common(toolkit, unit) if option != "-rdc=true"]
    argv += ["-cubin", "-gencode", f"arch=compute_{arch},code=sm_{arch}"]
    argv += [f"-Xptxas={option}" for option in ("-v", *ptxas)]
    return [*argv, unit.source, "-o", out]


def ptxas_argv(toolkit: Toolkit, arch: str, ptx: str, out: str) -> list[str]:
    """Assemble PTX, with the numbers that the register probe reads."""
    return [toolkit.ptxas, f"-arch={arch}", "-O3", "-v", ptx, "-o", out]


def nvlink_argv(
    toolkit: Toolkit,
    arch: str,
    objects: Iterable[str],
    out: str,
    *,
    ptx: bool = False,
    options: Iterable[str] = (),
) -> list[str]:
    """Link with optimization; with `ptx`, to the linked code before it is assembled."""
    argv = [toolkit.nvlink, "-Werror", "-lto", f"-nvvmpath={toolkit.nvvmpath}"]
    argv += [f"-L{toolkit.libraries}", "-lcudadevrt", f"-arch={arch}"]
    argv += ["-emit-ptx"] if ptx else ["-Xptxas=-v"]
    argv += list(options)
    return [*argv, *objects, "-o", out]
