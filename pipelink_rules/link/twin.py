"""Comparison of a linked kernel with its twins: the same sources as a single translation unit.

The LTO twin passes through the same link-time pipeline as the linked kernel and must be equal to
it, encodings included.  The native twin is compiled by nvcc without link-time optimization.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from pipelink_rules.files.atomic import write_text
from pipelink_rules.link.elf import Elf
from pipelink_rules.link.link import link_unchecked
from pipelink_rules.link.linker_log import LinkLog
from pipelink_rules.link.sass import disassemble
from pipelink_rules.model.linked_kernel import TwinBuild, TwinReport
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.command_lines import Unit, cubin_argv, fatbin_argv
from pipelink_rules.toolkit.compiler_errors import Subject, compile_checked
from pipelink_rules.toolkit.process import work_folder
from pipelink_rules.toolkit.ptxas_log import FunctionLog, read_assembler_log
from pipelink_rules.toolkit.toolkit import Toolkit


@dataclass(frozen=True)
class TwinUnit:
    """One variant of the kernel with the inputs of its object."""

    variant: Variant
    folder: str  # of its generated header
    sources: tuple[str, ...]
    includes: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()


def twin_source(
    units: Sequence[TwinUnit], runtime: Sequence[str], glue: str, folder: str | Path
) -> str:
    """Return the unit: every variant's header and sources, the runtime, the glue.

    The header of a variant is included by its path, before the source: it makes the variant the
    current one, and the include directive in the source has no effect then.
    """

    def include(path: str | Path) -> str:
        return f'#include "{os.path.relpath(path, folder)}"'

    lines = ["// The linked kernel as one translation unit: generated, for comparison only."]
    for unit in sorted(units, key=lambda item: item.variant.name):
        component = unit.variant.contract.component
        defines = [define.partition("=") for define in unit.defines]
        lines += ["", f"// {unit.variant.name}"]
        lines += [f"#define {name} {value or 1}" for name, _, value in defines]
        lines.append(include(Path(unit.folder) / f"{component}.contract.cuh"))
        lines += [include(source) for source in unit.sources]
        lines += [f"#undef {name}" for name, _, _ in defines]
        lines.append(f"#undef PL_CONTRACT_CURRENT_{component}")
    lines += ["", "// the device runtime", *(include(source) for source in runtime)]
    lines += ["", "// the glue", include(glue)]
    return "\n".join(lines) + "\n"


def build_twins(
    name: str,
    units: Sequence[TwinUnit],
    runtime: Sequence[str],
    glue: str,
    includes: Iterable[str],
    arch: str,
    toolkit: Toolkit,
    backend: str,
    lto_out: str | Path,
    native_out: str | Path,
    *,
    flags: Iterable[str] = (),
    options: Iterable[str] = (),
) -> tuple[LinkLog, LinkLog]:
    """Write both twins and `<name>.twin.cu`; return their logs, LTO first.

    includes: folders for the runtime and the glue (each unit has those of its variant).
    Raise PL0905 where the parts do not compile as one unit, although they link.
    """
    out = Path(lto_out)
    source = out.with_name(f"{name}.twin.cu")
    write_text(source, twin_source(units, runtime, glue, source.parent))
    folders = [folder for unit in units for folder in (unit.folder, *unit.includes)]
    paths = tuple(dict.fromkeys([*folders, *includes]))
    unit = Unit(str(source), arch, paths, (), tuple(flags), tuple(options), strict=False)
    subject = Subject(f"the twin of `{name}`")
    with work_folder(out.parent) as folder:
        fatbin, native = folder / "twin.fatbin", folder / "native.cubin"
        argv = cubin_argv(toolkit, unit, str(native))
        with ThreadPoolExecutor(1) as pool:
            alone = pool.submit(compile_checked, argv, toolkit, subject)
            compile_checked(fatbin_argv(toolkit, unit, str(fatbin)), toolkit, subject)
            lto_log = link_unchecked([str(fatbin)], name, arch, toolkit, backend, out)
            output = alone.result()
        os.replace(native, native_out)
    assembler = read_assembler_log(output.text)
    return lto_log, LinkLog(f"nvcc {toolkit.version}", tuple(argv), output.text, assembler, ())


def compare_twins(
    entry: str,
    linked: tuple[str | Path, LinkLog | None],
    lto: tuple[str | Path, LinkLog | None],
    native: tuple[str | Path, LinkLog | None],
    toolkit: Toolkit,
) -> TwinReport:
    """Read and compare three cubins; without its log, a build has no spill counts."""
    mine, other, alone = (_build(entry, *item, toolkit) for item in (linked, lto, native))
    return TwinReport(
        entry,
        mine,
        other,
        alone,
        mine.text_sha256 == other.text_sha256,
        mine.text_sha256 == alone.text_sha256,
        first_difference(entry, linked[0], lto[0], toolkit),
        first_difference(entry, linked[0], native[0], toolkit),
    )


def _build(entry: str, cubin: str | Path, log: LinkLog | None, toolkit: Toolkit) -> TwinBuild:
    elf = Elf(Path(cubin).read_bytes())
    spills = log.function(entry) if log else FunctionLog(entry)
    return TwinBuild(
        len(disassemble(cubin, entry, toolkit)),
        elf.registers(entry),
        elf.stack_bytes(entry),
        spills.spill_stores,
        spills.spill_loads,
        hashlib.sha256(elf.code(entry)).hexdigest(),
    )


def first_difference(entry: str, one: str | Path, two: str | Path, toolkit: Toolkit) -> str:
    """Return the first difference of two cubins as text; "" if their machine code is equal."""
    texts = [Elf(Path(path).read_bytes()).code(entry) for path in (one, two)]
    if texts[0] == texts[1]:
        return ""
    codes = [disassemble(path, entry, toolkit) for path in (one, two)]
    for left, right in zip_longest(*(code.instructions for code in codes)):
        if left is None or right is None:
            return f"{len(codes[0])} instructions and {len(codes[1])}"
        mine, other = (f"{i.guard} {i.opcode} {i.operands}".strip() for i in (left, right))
        if mine != other:
            return f"at {left.address:#06x}: `{mine}` and `{other}`"
    return "equal instructions with different encodings (scheduling)"
