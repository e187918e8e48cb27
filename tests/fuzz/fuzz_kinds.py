"""Which inputs are there, and what reads them?  Kind -> good examples, faults, the reader."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fuzz_mutate as faults
import fuzz_readers as readers
import fuzz_seeds as seeds
import shipped_declarations

Break = Callable[[Any, random.Random], Any]


@dataclass(frozen=True)
class Kind:
    """One kind of input."""

    name: str
    good: Callable[[], list[Any]]
    breaks: Break
    read: Callable[[Any, Path], object]  # (broken input, folder to work in)
    positions: bool = True  # every finding names a file

    def broken(self, seed: int) -> Any:
        """The input of a seed, the same in every run."""
        chance = random.Random(f"{self.name} {seed}")
        good = _good(self)
        if isinstance(good[0], bytes) and chance.random() < 0.03:
            return faults.anything(chance)
        return self.breaks(chance.choice(good), chance)


_GOOD: dict[str, list[Any]] = {}


def _good(kind: Kind) -> list[Any]:
    if kind.name not in _GOOD:
        _GOOD[kind.name] = kind.good()
    return _GOOD[kind.name]


def _file(name: str, read: readers.Read) -> Callable[[bytes, Path], object]:
    """A reader of bytes that finds them in a file of that name."""

    def from_file(data: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(data)
        return read(path)

    return from_file


_JSON, _WORDS, _BYTES = faults.mutated_json, faults.mutated_words, faults.mutated_bytes
_E = seeds.ENTRY
_FORMS = (
    Kind("contract", seeds.contracts, _WORDS, _file("x.contract.yaml", readers.contract)),
    Kind(
        "declaration",
        lambda: [dict(shipped_declarations.megakernels()[name]) for name in seeds.MEGAKERNELS],
        faults.mutated_value,
        readers.declaration,
    ),
    Kind("spec", seeds.specs, _JSON, _file("x.spec.json", readers.command("check", "FILE"))),
    Kind(
        "program", seeds.programs, _JSON, _file("x.program.json", readers.command("check", "FILE"))
    ),
    Kind(
        "program to place",
        seeds.programs,
        _JSON,
        _file("x.program.json", readers.command("place", "FILE", "-o", "-")),
    ),
    Kind(
        "program to link",
        lambda: seeds.programs()[:1],
        _JSON,
        _file(f"{_E}.program.json", readers.beside(readers.stage_files, readers.map_and_glue)),
    ),
    Kind(
        "placement",
        seeds.placements,
        _JSON,
        _file(f"{_E}.placement.json", readers.beside(readers.stage_files, readers.map_and_glue)),
    ),
    Kind(
        "earlier placement",
        seeds.placements,
        _JSON,
        _file("x.placement.json", readers.beside(readers.stage_files, readers.placed_again)),
    ),
    Kind(
        "audit",
        lambda: [readers.stage_files()[f"{_E}.audit.json"]],
        _JSON,
        _file(f"{_E}.audit.json", readers.beside(readers.stage_files, readers.map)),
    ),
    Kind("findings", seeds.findings, _JSON, _file("x.check.json", readers.findings)),
    Kind("manifest", readers.manifests, _JSON, _file("x.manifest.json", readers.manifest)),
    Kind(
        "recording",
        seeds.recordings,
        _JSON,
        _file("x.record.json", readers.command("record", "FILE")),
    ),
    Kind(
        "traced recording",
        seeds.recordings,
        _JSON,
        _file("x.trace.json", readers.command("trace", "FILE", "-o", "OUT")),
    ),
    Kind(
        "compared program",
        lambda: seeds.programs()[:1],
        _JSON,
        _file(f"{_E}.program.json", readers.beside(readers.stage_files, readers.compared)),
    ),
    Kind("interface", seeds.interfaces, _JSON, _file("x.interface.json", readers.interface)),
    Kind(
        "sidecar",
        seeds.sidecars,
        _WORDS,
        _file("x.contract.yaml", readers.command("inspect", "FILE")),
    ),
    Kind("cubin", lambda: [seeds.elf()], _BYTES, readers.elf, positions=False),
    Kind("machine code", lambda: [seeds.SASS], _WORDS, readers.sass, positions=False),
    Kind("ptx", lambda: [seeds.PTX], _WORDS, readers.ptx, positions=False),
    Kind(
        "role code",
        lambda: [code for _, code in seeds.raw_roles()],
        _WORDS,
        readers.role_code,
        positions=False,
    ),
    Kind("linker log", lambda: [seeds.LOG], _WORDS, readers.log, positions=False),
    Kind("compiler log", lambda: [seeds.COMPILER], _WORDS, readers.compiler, positions=False),
    Kind("object listing", lambda: [seeds.LISTING], _WORDS, readers.listing, positions=False),
    Kind("depfile", lambda: [seeds.DEPFILE], _WORDS, _file("unit.d", readers.depfile)),
    Kind("kept result", readers.kept_good, _WORDS, _file("kept", readers.kept)),
)
# Files of the right form whose names and numbers are those of another one.
_NAMES = tuple(
    replace(kind, name=f"{kind.name}, other names", breaks=faults.mutated_names)
    for kind in _FORMS
    if kind.breaks is _JSON
)
KINDS = {kind.name: kind for kind in (*_FORMS, *_NAMES)}
