"""The sidecar and the interface of an object: Variant, BuildRecord <-> `<component>.contract.yaml`.

    format: pipelink/sidecar/2
    digests: {build: ..., interface: ...}   sha256 of each half as compact canonical JSON
    interface: ...                          all that check and place read
    build: ...                              how the object was made

The interface leaves out spans, summary and file names, and rounds measured registers up to 8, so
that a comment or a register more or less does not rebuild what depends on it.  The text is YAML in
which every value that is not a plain word is JSON: readable, and the same bytes everywhere.
"""

import dataclasses
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped]

from pipelink_rules.contract.identifiers import invalid_identifier_reason
from pipelink_rules.contract.yaml_tree import describe, require_content
from pipelink_rules.diagnostics.diagnostic import PipelinkError, error
from pipelink_rules.files.codec import decode, encode, format_key, to_json
from pipelink_rules.model.contract import round_registers
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import BuildRecord, Variant

FORMAT = format_key("sidecar")
LARGEST_FILE = 4 << 20  # bytes; a large one has 200 KiB
DEEPEST = 32
MOST_NODES = 50_000
DIGEST = re.compile(r"[0-9a-f]{12}")
HALVES = ("build", "interface")

Noun = TypeVar("Noun")


def dump_sidecar(variant: Variant, build: BuildRecord) -> str:
    """Return the text of a sidecar."""
    halves = {"build": encode(build), "interface": _bare(encode(interface_of(variant)))}
    data = {"format": FORMAT, "digests": {k: _digest(halves[k]) for k in HALVES}}
    head = f"# {variant.name}: contract and build record of one object. Generated, do not edit.\n"
    return head + canonical_yaml({**data, **halves}, order=("format", "digests", "interface"))


def load_sidecar(path: str | Path) -> tuple[Variant, BuildRecord]:
    """Return the two halves of a sidecar; the contract's `file` and `span` are the sidecar itself.

    Raise PL0020 where it is not a sidecar, PL0021 where a half does not match its digest, PL0022
    where another version of PipeLink wrote it.
    """
    file = describe(path)
    data = _read(Path(path), file)
    written = data.get("format", data.get("sidecar"))  # version 1 had a key `sidecar: 1`
    if written is None:
        what = "it is a contract" if "contract" in data else "it has no `format:`"
        raise _no_sidecar(file, what)
    if written != FORMAT:
        raise error(
            "PL0022",
            f"{file} was written by another version of PipeLink",
            Span(file),
            expected=f"format: {FORMAT}",
            found=f"{'format' if 'format' in data else 'sidecar'}: {str(written)[:40]}",
            suggestions=("run `scons` to rebuild the component with this version",),
            subject=file,
        )
    digests = data.get("digests")
    if not isinstance(digests, dict):
        raise _no_sidecar(file, "it has no digests")
    for half in HALVES:
        actual = _digest(data.get(half))
        if digests.get(half) != actual:
            raise error(
                "PL0021",
                f"the `{half}` half of {file} was modified after the build",
                Span(file, *_line_of(Path(path), half), len(half)),
                expected=f"sha256 {digests.get(half)}",
                found=f"sha256 {actual}",
                at_run_time="the checked contract does not describe the object: hang, data race or "
                "wrong results",
                suggestions=("restore the file", "or run `scons` to rebuild the component"),
                subject=f"{file}: {half}",
            )
    variant = _noun(Variant, data["interface"], file)
    # Component and digest are parts of paths: they cannot name another folder.
    component = variant.contract.component
    if reason := invalid_identifier_reason(component):
        raise _no_sidecar(file, f"invalid component name `{component[:80]}`: {reason}")
    if not DIGEST.fullmatch(variant.digest):
        raise _no_sidecar(file, f"`{variant.digest[:80]}` is not the digest of a variant")
    contract = replace(variant.contract, file=file, span=Span(file))
    return replace(variant, contract=contract), _noun(BuildRecord, data["build"], file)


def _bare(data: Any) -> Any:
    """Remove the empty spans."""
    if isinstance(data, dict):
        return {k: _bare(v) for k, v in data.items() if k not in ("span", "spans") or v}
    return [_bare(item) for item in data] if isinstance(data, list) else data


def _digest(half: Any) -> str:
    try:
        text = json.dumps(half, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    except (TypeError, ValueError):  # YAML values that JSON does not have: dates, sets
        text = repr(type(half))
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path, file: str) -> dict[str, Any]:
    try:
        require_content(path)
        with open(path, "rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as problem:
        raise _no_sidecar(file, getattr(problem, "strerror", None) or str(problem)) from None
    if len(data) > LARGEST_FILE:
        raise _no_sidecar(file, f"it is larger than {LARGEST_FILE:,} bytes")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = data.decode()
        depth = nodes = 0
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise _no_sidecar(file, "it has YAML aliases")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            nodes += isinstance(event, yaml.NodeEvent)
            if depth > DEEPEST:
                raise _no_sidecar(file, "it is nested too deeply")
            if nodes > MOST_NODES:
                raise _no_sidecar(file, f"it has more than {MOST_NODES:,} values")
        found = yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, TypeError) as problem:
        raise _no_sidecar(file, " ".join(str(problem).split())[:200]) from None
    if not isinstance(found, dict):
        raise _no_sidecar(file, "it is not a mapping")
    return found


def _noun(kind: type[Noun], data: Any, file: str) -> Noun:
    try:
        return decode(kind, data)
    except (ValueError, RecursionError) as problem:
        raise _no_sidecar(file, str(problem)[:200]) from None


def _line_of(path: Path, half: str) -> tuple[int, int]:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return next(((n, 1) for n, line in enumerate(lines, 1) if line.startswith(f"{half}:")), (1, 1))


def _no_sidecar(file: str, reason: str) -> PipelinkError:
    return error(
        "PL0020",
        f"{file} is not a sidecar: {reason}",
        Span(file),
        expected="the `.contract.yaml` that the build writes next to an object",
        suggestions=("run `scons` to rebuild the component",),
        subject=file,
    )


def interface_of(variant: Variant) -> Variant:
    """Return the variant as program, check and place may see it."""
    measured = tuple(
        (
            role,
            replace(
                item, registers=round_registers(item.registers), entry=round_registers(item.entry)
            ),
        )
        for role, item in variant.measured
    )
    return replace(without_spans(variant), measured=measured)


def dump_interface(variant: Variant) -> str:
    """Return `<component>.interface.json`; `files.codec.read_json(path, Variant)` reads it."""
    return to_json(interface_of(variant))


def without_spans(variant: Variant) -> Variant:
    """Return the variant without spans, file names and summary, which a comment could change."""
    contract = _strip(variant.contract)
    return replace(variant, contract=replace(contract, summary="", file=""))


def _strip(noun: Any) -> Any:
    if isinstance(noun, tuple):
        return tuple(_strip(item) for item in noun)
    if not dataclasses.is_dataclass(noun):
        return noun
    changes: dict[str, Any] = {}
    for item in dataclasses.fields(noun):
        value = getattr(noun, item.name)
        if item.name == "span":
            changes[item.name] = None
        elif item.name == "spans":
            changes[item.name] = ()
        elif isinstance(value, tuple) or dataclasses.is_dataclass(value):
            changes[item.name] = _strip(value)
    return replace(noun, **changes)  # type: ignore[type-var]


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_WORDS = frozenset(
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"]
)  # YAML 1.1 reads these


def canonical_yaml(data: dict[str, Any], order: tuple[str, ...] = ()) -> str:
    """Return the text of a mapping; `order` puts some of its keys first.

    The other keys are sorted; every scalar that is not a plain word is JSON, which is also YAML.
    """
    lines: list[str] = []
    for key in (*order, *sorted(set(data) - set(order))):
        _emit(lines, 0, f"{_scalar(key)}:", data[key])
    return "\n".join(lines) + "\n"


def _emit(lines: list[str], depth: int, head: str, value: Any, dash: str = "") -> None:
    """Add the lines of `head` and its value; after a dash the contents are indented further."""
    pad = "  " * depth + dash
    inner = depth + 1 + (len(dash) // 2)
    if isinstance(value, dict) and value:
        lines.append(pad + head)
        for key in sorted(value):
            _emit(lines, inner, f"{_scalar(key)}:", value[key])
    elif isinstance(value, list) and value:
        flow = _flow(value)
        if flow is not None and len(pad) + len(head) + len(flow) < 100:
            lines.append(f"{pad}{head} {flow}")
            return
        lines.append(pad + head)
        for item in value:
            _emit_item(lines, inner, item)
    else:
        lines.append(f"{pad}{head} {_scalar(value)}")


def _emit_item(lines: list[str], depth: int, item: Any) -> None:
    if isinstance(item, dict) and item:
        first, *rest = sorted(item)
        _emit(lines, depth, f"{_scalar(first)}:", item[first], dash="- ")
        for key in rest:
            _emit(lines, depth + 1, f"{_scalar(key)}:", item[key])
    else:
        _emit(lines, depth, "-", item)


def _flow(value: list[Any]) -> str | None:
    """Return a list on one line, None where it holds mappings of more than one key."""
    parts = []
    for item in value:
        if isinstance(item, dict) and len(item) > 1:
            return None
        if isinstance(item, dict) and item:
            ((key, inner),) = item.items()
            part = (
                None if isinstance(inner, (dict, list)) else f"{{{_scalar(key)}: {_scalar(inner)}}}"
            )
        else:
            part = _flow(item) if isinstance(item, list) and item else _scalar(item)
        if part is None:
            return None
        parts.append(part)
    return f"[{', '.join(parts)}]"


def _scalar(value: Any) -> str:
    if value in ({}, []) and not isinstance(value, (bool, int, str)):
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_WORDS:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
