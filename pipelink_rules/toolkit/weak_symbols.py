"""Weak symbols of an object: unoptimized PTX -> table of names, each with a digest of its body.

Inline functions, templates, members and inline variables are weak: a link keeps one definition of
each name and silently drops the others, the always-inlined ones too (merging precedes inlining).
The digest is independent of paths, of labels and of the rest of the object.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from pipelink_rules.model.variant import WeakSymbol
from pipelink_rules.toolkit.process import run_tool
from pipelink_rules.toolkit.ptx import Function, Module, Variable, malformed_ptx, read_ptx

_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_DEPOT = re.compile(r"__local_depot\d+")


def weak_table(listing: str) -> tuple[WeakSymbol, ...]:
    """Return the weak symbols of an unoptimized PTX listing, sorted by name."""
    module = read_ptx(listing)
    try:
        bodies = _Bodies(module)
        names = [(item.name, "func") for item in module.functions if item.linkage == "weak"]
        names += [(item.name, "data") for item in module.variables if item.linkage == "weak"]
        return tuple(WeakSymbol(name, kind, bodies.digest(name)) for name, kind in sorted(names))
    except RecursionError:
        raise malformed_ptx("calls are nested too deeply") from None


class _Bodies:
    """Digests of bodies in which internal names are replaced by the digests of their bodies."""

    def __init__(self, module: Module):
        self._texts = {item.name: _function_text(item) for item in module.functions}
        self._texts |= {item.name: " ".join(item.text.split()) for item in module.variables}
        # Internal names contain a digest of the path, so their text differs between checkouts.
        items: list[Function | Variable] = [*module.functions, *module.variables]
        self._internal = {item.name for item in items if item.linkage == ""}
        self._done: dict[str, str] = {}

    def digest(self, name: str, open_names: tuple[str, ...] = ()) -> str:
        """Return sha256 over the normalized body."""
        if name in self._done:
            return self._done[name]

        def spell(hit: re.Match[str]) -> str:
            word = hit[0]
            if word == name:
                return "$self"
            if word in open_names:
                return "$outer"
            if word in self._internal:
                return f"${self.digest(word, (*open_names, name))[:16]}"
            return word

        text = _NAME.sub(spell, self._texts[name])
        result = hashlib.sha256(text.encode()).hexdigest()
        self._done[name] = result
        return result


def _function_text(function: Function) -> str:
    lines = [function.header]
    names = (item.operands for item in function.statements if item.opcode == "label")
    labels = {name: f"$L{number}" for number, name in enumerate(dict.fromkeys(names))}
    for statement in function.statements:
        text = _DEPOT.sub("__local_depot", statement.text)
        if labels:
            text = _NAME.sub(lambda hit: labels.get(hit[0], hit[0]), text)
        lines.append(text)
    # Parameters are named after the function, but its name is not part of the body.
    return "\n".join(lines).replace(function.name, "$self")


@dataclass(frozen=True)
class SymbolConflict:
    """One name with several bodies in one link."""

    name: str
    kind: str
    owners: tuple[tuple[str, ...], ...]  # one group of owners per body


def find_clashes(tables: Mapping[str, Iterable[WeakSymbol]]) -> list[SymbolConflict]:
    """Return the names that two objects define differently; tables: owner -> its weak symbols."""
    bodies: dict[str, dict[str, list[str]]] = {}
    kinds: dict[str, str] = {}
    for owner, table in sorted(tables.items()):
        for symbol in table:
            bodies.setdefault(symbol.name, {}).setdefault(symbol.body, []).append(owner)
            kinds[symbol.name] = symbol.kind
    return [
        SymbolConflict(name, kinds[name], tuple(tuple(owners) for owners in found.values()))
        for name, found in sorted(bodies.items())
        if len(found) > 1
    ]


def demangle(names: Sequence[str]) -> dict[str, str]:
    """Return the C++ spellings of symbols, for messages; unchanged without c++filt."""
    tool = which("c++filt")
    if not tool or not names or any("\0" in name for name in names):
        return {name: name for name in names}
    output = run_tool([tool, *names], {"PATH": "/usr/bin:/bin"}, timeout=10)
    lines = output.text.splitlines()
    spelled = lines if output.ok and len(lines) == len(names) else names
    return dict(zip(names, spelled, strict=True))


def weak_file(fatbin: str | Path) -> Path:
    """Return the file of the weak symbols of an object without a sidecar."""
    return Path(fatbin).with_suffix(".weak.json")
