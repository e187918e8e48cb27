"""Parsing of a declaration: plain Python values of an SConscript -> MegakernelSpec.

Only the declaration itself is validated: types, names, instances.  `program.connections` and
`program.infer` check it against the components (ports, parameters, work fields) later.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelink_rules.diagnostics.allow import is_allowable
from pipelink_rules.diagnostics.catalogue import code_of, similar
from pipelink_rules.diagnostics.sink import DiagnosticSink
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.model.program import MegakernelSpec
from pipelink_rules.model.source_span import Span
from pipelink_rules.program.declaration_parser import DeclarationParser

SHORTEST = 3  # words of a reason


def parse_declaration(
    name: str,
    instances: Mapping[str, tuple[str, Mapping[str, int | str]]],
    connect: Mapping[str, str] | None = None,
    tensors: Mapping[str, str | Sequence[str]] | None = None,
    scalars: Mapping[str, str | Sequence[str]] | None = None,
    transfers: Mapping[str, str] | None = None,
    stages: Mapping[str, int] | None = None,
    warps: Mapping[str, int] | None = None,
    archs: str | Sequence[str] = ("sm_90a",),
    occupancy: int = 1,
    cluster: Sequence[int] = (1, 1, 1),
    runtime: str = "release",
    summary: str = "",
    allow: Mapping[str, str] | None = None,
    span: Span | None = None,
    text: str = "",
) -> MegakernelSpec:
    """Return the declaration; raise all diagnostics about its form (PL0040..PL0049, PL0077).

    span: the call in the SConscript.  text: that SConscript, so that diagnostics point to the entry
    itself; without it they point to the call.
    """
    parser = DeclarationParser(span, text)
    parser.duplicates()
    parser.name(name, "a megakernel", "name")
    instance_specs = parser.instances(instances)
    spec = MegakernelSpec(
        name=name if isinstance(name, str) else "",
        instances=instance_specs,
        connect=parser.connect(connect),
        tensors=parser.bindings("tensors", tensors),
        scalars=parser.bindings("scalars", scalars),
        transfers=tuple(parser.entries("transfers", transfers, str, "a transfer kind")),
        stages=tuple(parser.entries("stages", stages, int, "a number of stages")),
        warps=tuple(parser.entries("warps", warps, int, "a number of warps", endpoint=False)),
        archs=parser.archs(archs),
        occupancy=parser.number("occupancy", occupancy, 1, 32),
        cluster=parser.cluster(cluster),
        runtime=parser.runtime(runtime),
        summary=summary if parser.typed(summary, str, "summary") else "",
        allow=parse_allow(parser, allow),
        span=parser.span,
        spans=tuple(sorted(parser.spans.items())),
    )
    parser.keywords(spec)
    parser.findings.raise_if_any()
    check_instances(spec).raise_if_any()
    return spec


def check_instances(spec: MegakernelSpec) -> DiagnosticSink:
    """Check that every entry names a declared instance (PL0044)."""
    findings = DiagnosticSink()
    known = [item.name for item in spec.instances]
    used: list[tuple[str, tuple[str, ...]]] = []
    for connection in spec.connect:
        left, right = connection.consumer, connection.producer
        used += [(left, ("connect", left)), (right, ("connect", left, right))]
    for section, bindings in (("tensors", spec.tensors), ("scalars", spec.scalars)):
        used += [(end, (section, keyword, end)) for keyword, ends in bindings for end in ends]
    used += [(key, ("transfers", key)) for key, _ in spec.transfers]
    used += [(key, ("stages", key)) for key, _ in spec.stages]
    used += [(key, ("warps", key)) for key, _ in spec.warps]
    reported = set()
    for end, clause in used:
        instance = end.partition(".")[0]
        if instance in known or (instance, clause) in reported:
            continue
        reported.add((instance, clause))
        findings.add(
            "PL0044",
            f"unknown instance `{instance}`",
            (spec.where(*clause), f"named by `{end}`"),
            suggestions=similar_name_help(instance, known),
            subject=".".join((*clause, end)),
        )
    return findings


def parse_allow(parser: DeclarationParser, value: Any) -> tuple[tuple[str, str], ...]:
    """Return codes with their reasons, sorted; report invalid codes and reasons (PL0077)."""
    found = []
    for code, reason in parser.mapping(value, "allow", 'a dict {"PL0505": "why it is harmless"}'):
        place = parser.span_of("allow", code)
        if not is_allowable(code):
            _reject(parser, code, place)
        elif not isinstance(reason, str) or len(reason.split()) < SHORTEST:
            parser.findings.add(
                "PL0077",
                f"`allow` entry for {code} has no reason",
                place,
                expected=f"a reason of at least {SHORTEST} words",
                found=f"{reason!r:.60}",
                suggestions=(
                    "write why the diagnostic is harmless in this kernel; the manifest records it",
                ),
                subject=f"allow/{code}",
            )
        else:
            found.append((code, " ".join(reason.split())))
    return tuple(sorted(found))


def _reject(parser: DeclarationParser, code: str, place: Span | None) -> None:
    row = code_of(code)
    nearest = similar(code) if row is None else ""
    parser.findings.add(
        "PL0077",
        f"{code} cannot be allowed" if row else f"unknown code `{code[:60]}` in `allow`",
        place,
        expected="a code of the check, or of the audit of the linked kernel",
        found=f"a code of stage `{row.stage}`, after which nothing can be linked" if row else "",
        suggestions=(f"a similar code exists: {nearest}",) if nearest else (),
        subject=f"allow/{code}",
    )
