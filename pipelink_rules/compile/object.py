"""Compilation of one unit: source -> link-time code, its PTX, and the table of weak symbols."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pipelink_rules.files.atomic import write_text
from pipelink_rules.files.codec import to_json
from pipelink_rules.model.variant import WeakSymbol, WeakTable
from pipelink_rules.toolkit.command_lines import Unit, fatbin_argv, listing_argv
from pipelink_rules.toolkit.compiler_errors import Subject, compile_checked
from pipelink_rules.toolkit.process import run, work_folder
from pipelink_rules.toolkit.toolkit import Toolkit
from pipelink_rules.toolkit.weak_symbols import weak_file, weak_table

Inspect = Callable[[str, Path], None]  # (source, dependency file): raises on undeclared headers


@dataclass(frozen=True)
class CompiledUnit:
    """The outputs of one translation unit, in a work folder."""

    fatbin: Path
    ptx: Path
    weak: tuple[WeakSymbol, ...]
    command: tuple[str, ...]  # with the tool's name instead of its path
    warnings: str


def compile_unit(
    unit: Unit, toolkit: Toolkit, folder: Path, subject: Subject, inspect: Inspect | None = None
) -> CompiledUnit:
    """Compile a unit into `folder`.

    The compiler runs twice, in parallel: once for the link-time code and its PTX, once without
    optimization for the table of weak symbols.
    """
    fatbin, depfile, listing = (folder / f"unit.{end}" for end in ("fatbin", "d", "listing.ptx"))
    # The list of headers costs an additional preprocessor run.
    argv = fatbin_argv(toolkit, unit, str(fatbin), str(depfile) if inspect else "", str(folder))
    with ThreadPoolExecutor(2) as pool:
        main = pool.submit(compile_checked, argv, toolkit, subject)
        side = pool.submit(run, listing_argv(toolkit, unit, str(listing)), toolkit)
        output = main.result()  # its errors are reported first
        listed = side.result()
        if not listed.ok:
            # Some sources compile with inlining only: the listing lacks inlined functions then.
            shown = listing_argv(toolkit, unit, str(listing), show_inline=False)
            compile_checked(shown, toolkit, subject)
    if inspect is not None:
        inspect(unit.source, depfile)
    named = [Path(argv[0]).name, *argv[1:]]  # equal on every machine
    return CompiledUnit(
        fatbin,
        folder / f"{Path(unit.source).stem}.ptx",
        weak_table(listing.read_text(encoding="utf-8")),
        tuple(part.replace(f"{folder}/", "").replace(str(folder), ".") for part in named),
        output.text.strip(),
    )


def compile_object(
    source: str | Path,
    out: str | Path,
    arch: str,
    toolkit: Toolkit,
    *,
    includes: Iterable[str | Path] = (),
    defines: Iterable[str] = (),
    flags: Iterable[str] = (),
    name: str = "",
    inspect: Inspect | None = None,
) -> tuple[WeakSymbol, ...]:
    """Compile glue or a device runtime to `out` (.fatbin) and the adjacent `.weak.json`.

    flags: code-generation flags as in Variant.flags, equal in all objects of a link.
    Raise PL0905 if the compilation fails.
    """
    target, subject = Path(out), Subject(name or f"`{source}`")
    unit = Unit(str(source), arch, tuple(map(str, includes)), tuple(defines), tuple(flags))
    with work_folder(target.parent) as folder:
        compiled = compile_unit(unit, toolkit, folder, subject, inspect)
        write_text(weak_file(target), to_json(WeakTable(compiled.weak)))
        os.replace(compiled.fatbin, target)
    return compiled.weak


def runtime_file(runtime: str, flags: Iterable[str] = ()) -> str:
    """Return the file of a device runtime for a set of code-generation flags: `release.fatbin`."""
    suffix = "".join(f"-{flag.replace('=', '_')}" for flag in sorted(flags))
    return f"{runtime}{suffix}.fatbin"
