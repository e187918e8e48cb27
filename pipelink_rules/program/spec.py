"""Parsing of a declaration: plain Python values of an SConscript -> MegakernelSpec.

Only the declaration itself is validated: types, names, instances; all mistakes are reported, not
only the first.  `program.connections` and `program.infer` check it against the components later.
"""

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from pipelink_rules.contract.identifiers import invalid_identifier_reason
from pipelink_rules.diagnostics.allow import is_allowable
from pipelink_rules.diagnostics.catalogue import code_of, similar
from pipelink_rules.diagnostics.diagnostic import Details, DiagnosticSink
from pipelink_rules.diagnostics.wording import plural, similar_name_help
from pipelink_rules.model.program import RUNTIMES, ConnectionSpec, InstanceSpec, MegakernelSpec
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS
from pipelink_rules.program.declaration_locations import duplicates, locate

SHORTEST = 3  # words of a reason
CLUSTER_LARGEST = 8  # CTAs of a portable cluster

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_LABEL = re.compile(r"(@[A-Za-z0-9_.-]+)?//[A-Za-z0-9_./-]*(:[A-Za-z0-9_.-]+)?\Z")
_ENDPOINT = re.compile(r"[A-Za-z][A-Za-z0-9_]*\.[A-Za-z][A-Za-z0-9_]*\Z")


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
    default: bool = True,
    span: Span | None = None,
    text: str = "",
) -> MegakernelSpec:
    """Return the declaration; raise all diagnostics about its form (PL0040..PL0049, PL0077).

    span: the call in the SConscript.  text: that SConscript, so that diagnostics point to the entry
    itself; without it they point to the call.  default: whether a build without targets includes
    it, which is no property of the program.
    """
    parser = _Parser(span, text)
    parser.typed(default, bool, "default", want="True or False")
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
        allow=parser.allow(allow),
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


class _Parser:
    """Parses one declaration and keeps its diagnostics and the locations of its entries."""

    def __init__(self, span: Span | None, text: str):
        self.findings = DiagnosticSink()
        self.spans: dict[str, Span] = {}
        self._text = text
        found = locate(text, span.line) if span is not None else None
        self.span = Span(span.file, *found) if span is not None and found else span

    def span_of(self, *path: str) -> Span | None:
        """Return and keep the location of an entry, or of the closest one that encloses it."""
        if self.span is None or not self._text:
            return self.span
        for depth in range(len(path), 0, -1):
            found = locate(self._text, self.span.line, *path[:depth])
            if found is not None:
                span = Span(self.span.file, *found)
                self.spans["/".join(path[:depth])] = span
                return span
        return self.span

    def reject(
        self, code: str, message: str, path: tuple[str, ...], **clauses: Unpack[Details]
    ) -> None:
        """Report an entry."""
        place, subject = self.span_of(*path), "/".join(path)
        self.findings.add(code, message, place, subject=subject, **clauses)

    def duplicates(self) -> None:
        if self.span is None:
            return
        for path, first, second in duplicates(self._text, self.span.line):
            self.findings.add(
                "PL0049",
                f"duplicate key `{path[-1]}` in `{path[0]}`",
                (Span(self.span.file, *second), "used"),
                (Span(self.span.file, *first), "overridden"),
                suggestions=("write every key once; a tensor for several ports has a list of them",)
                if path[0] == "tensors"
                else ("write every key once",),
                subject="/".join(path),
            )

    def typed(self, value: Any, kind: type | tuple[type, ...], *path: str, want: str = "") -> bool:
        """Return whether the value has the type; a bool is not an int here."""
        if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
            return True
        names = kind if isinstance(kind, tuple) else (kind,)
        readable = {str: "a string", int: "an integer", Mapping: "a dict", Sequence: "a list"}
        expected = want or " or ".join(readable.get(item, item.__name__) for item in names)
        message = f"`{'.'.join(path)}` must be {expected}"
        found = f"{type(value).__name__}: {value!r:.60}"
        self.reject("PL0040", message, path, expected=expected, found=found)
        return False

    def name(self, value: Any, what: str, *path: str) -> bool:
        if not self.typed(value, str, *path):
            return False
        problem = invalid_identifier_reason(value)
        if not problem and keyword.iskeyword(value):
            problem = "it is a keyword of Python"
        if not problem:
            return True
        suggestion = re.sub(r"[^A-Za-z0-9]+", "_", value).strip("_")
        fits = suggestion != value and not invalid_identifier_reason(suggestion)
        suggestions = (f"write `{suggestion}`",) if fits else ()
        message = f"invalid name `{value}` for {what}: {problem}"
        self.reject("PL0041", message, path, suggestions=suggestions)
        return False

    def mapping(self, value: Any, section: str, form: str) -> list[tuple[str, Any]]:
        """Return the entries of a section whose keys are strings."""
        if value is None or not self.typed(value, Mapping, section, want=form):
            return []
        return [(key, item) for key, item in value.items() if self.typed(key, str, section)]

    def instances(self, value: Any) -> tuple[InstanceSpec, ...]:
        form = 'a dict {"name": ("//package:component", {"PARAM": value})}'
        found = []
        self.span_of("instances")
        entries = self.mapping({} if value is None else value, "instances", form)
        if not entries and not self.findings.items:
            self.findings.add(
                "PL0040", "`instances` is empty", self.span_of("instances"), expected=form
            )
        for name, pair in entries:
            self.name(name, "an instance", "instances", name)
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                self.typed(pair, (), "instances", name, want='("//package:component", {...})')
                continue
            label, arguments = self.label(name, pair[0]), self.arguments(name, pair[1])
            found.append(InstanceSpec(name, label, arguments, self.span_of("instances", name)))
        return tuple(found)

    def label(self, instance: str, value: Any) -> str:
        if not self.typed(value, str, "instances", instance, want="a label string"):
            return ""
        span = self.span_of("instances", instance, value)
        if span is not None:
            self.spans[f"labels/{instance}"] = span
        if not _LABEL.match(value):
            rooted = f"//{value.lstrip('/')}"
            self.findings.add(
                "PL0042",
                f"component label `{value}` must start with `//`"
                if not value.startswith(("//", "@"))
                else f"malformed component label `{value}`",
                span,
                expected="//package:component, with the package relative to the repository root",
                suggestions=(f"write `{rooted}`",) if _LABEL.match(rooted) else (),
                subject=instance,
            )
            return str(value)
        package, colon, _ = value.partition(":")
        return str(value) if colon else f"{value}:{package.rstrip('/').rpartition('/')[2]}"

    def arguments(self, instance: str, value: Any) -> tuple[tuple[str, int | str], ...]:
        if not self.typed(value, Mapping, "instances", instance, want='a dict {"PARAM": value}'):
            return ()
        found = []
        for name, item in value.items():
            path = ("instances", instance, str(name))
            if self.typed(name, str, *path) and self.typed(
                item, (int, str), *path, want="an integer or the name of a dtype"
            ):
                self.span_of(*path)
                found.append((name, item))
        return tuple(sorted(found))

    def endpoint(self, value: Any, *path: str) -> bool:
        if not self.typed(value, str, *path, want='a string "instance.port"'):
            return False
        if not _ENDPOINT.match(value):
            message = f"malformed port reference `{value}`"
            self.reject("PL0043", message, path, expected="instance.port")
            return False
        return True

    def connect(self, value: Any) -> tuple[ConnectionSpec, ...]:
        form = 'a dict {"consumer.port": "producer.port"}'
        found = []
        for consumer, producer in self.mapping(value, "connect", form):
            path = ("connect", consumer)
            left = self.endpoint(consumer, *path)
            right = self.endpoint(producer, *path, str(producer))
            if left and right:
                self.span_of(*path, producer)
                found.append(ConnectionSpec(consumer, producer, self.span_of(*path)))
        return tuple(found)

    def bindings(self, section: str, value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
        what = section[:-1]
        form = 'a dict {"keyword": "instance.port"}, or a list of ports'
        found = []
        for word, ends in self.mapping(value, section, form):
            self.name(word, f"a {what} keyword", section, word)
            ports = (ends,) if isinstance(ends, str) else ends
            if not isinstance(ports, (list, tuple)) or not ports:
                self.typed(ends, (), section, word, want='"instance.port" or a list of them')
                continue
            self.span_of(section, word)
            good = [port for port in ports if self.endpoint(port, section, word, str(port))]
            for port in good:
                self.span_of(section, word, port)
            found.append((word, tuple(good)))
        return tuple(found)

    def entries(
        self, section: str, value: Any, kind: type, want: str, endpoint: bool = True
    ) -> list[tuple[str, Any]]:
        """Return a section of single values, keyed by a port, an instance or a role."""
        key_form = "instance.port" if endpoint else "instance"
        found = []
        for key, item in self.mapping(value, section, f'a dict {{"{key_form}": {want}}}'):
            fits = self.endpoint(key, section, key) if endpoint else self._role(key, section)
            if self.typed(item, kind, section, key, want=want) and fits:
                self.span_of(section, key)
                found.append((key, item))
        return sorted(found)

    def _role(self, key: str, section: str) -> bool:
        return bool(_NAME.match(key)) or self.endpoint(key, section, key)

    def archs(self, value: Any) -> tuple[str, ...]:
        items = (value,) if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)) or not items:
            self.typed(value, (), "archs", want='a list of targets, like ["sm_90a"]')
            return ()
        for item in items:
            span = self.span_of("archs", item) if isinstance(item, str) else self.span_of("archs")
            if self.typed(item, str, "archs") and item not in TARGETS:
                self.findings.add(
                    "PL0046",
                    f"unknown target `{item}`",
                    span,
                    suggestions=similar_name_help(item, TARGETS),
                    subject=item,
                )
        return tuple(dict.fromkeys(item for item in items if isinstance(item, str)))

    def number(self, section: str, value: Any, low: int, high: int) -> int:
        if not self.typed(value, int, section):
            return low
        if not low <= value <= high:
            self.reject(
                "PL0047",
                f"invalid value {value} for `{section}`",
                (section,),
                expected=f"{low} to {high} CTAs per SM",
                found=plural(value, "CTA") + " per SM",
            )
        return int(value)

    def cluster(self, value: Any) -> tuple[int, int, int]:
        self.span_of("cluster")
        sizes = tuple(value) if isinstance(value, (list, tuple)) else ()
        if len(sizes) != 3 or not all(type(size) is int for size in sizes):
            self.typed(value, (), "cluster", want="three integers: CTAs along x, y and z")
            return (1, 1, 1)
        x, y, z = sizes
        if min(sizes) < 1 or x * y * z > CLUSTER_LARGEST:
            self.reject(
                "PL0047",
                f"invalid value {x} x {y} x {z} for `cluster`",
                ("cluster",),
                expected=f"1 to {CLUSTER_LARGEST} CTAs",
                found=f"{x * y * z} CTAs",
            )
        return (x, y, z)

    def runtime(self, value: Any) -> str:
        if self.typed(value, str, "runtime") and value not in RUNTIMES:
            suggestions = similar_name_help(value, RUNTIMES)
            message = f"unknown device runtime `{value}`"
            self.reject("PL0048", message, ("runtime",), suggestions=suggestions)
        return value if isinstance(value, str) else ""

    def keywords(self, spec: MegakernelSpec) -> None:
        """Check that a launcher keyword is a tensor or a scalar, not both."""
        scalars = {word for word, _ in spec.scalars}
        for word, _ in spec.tensors:
            if word in scalars:
                self.findings.add(
                    "PL0045",
                    f"launcher keyword `{word}` is both a tensor and a scalar",
                    (spec.where("scalars", word), "a scalar"),
                    (spec.where("tensors", word), "a tensor"),
                    suggestions=("rename one of the two keywords",),
                    subject=word,
                )

    def allow(self, value: Any) -> tuple[tuple[str, str], ...]:
        """Return codes with their reasons, sorted; report invalid codes and reasons (PL0077)."""
        found = []
        form = 'a dict {"PL0505": "why it is harmless"}'
        for code, reason in self.mapping(value, "allow", form):
            path = ("allow", code)
            if not is_allowable(code):
                row = code_of(code)
                nearest = "" if row else similar(code)
                stage = (
                    f"a code of stage `{row.stage}`, after which nothing can be linked"
                    if row
                    else ""
                )
                self.reject(
                    "PL0077",
                    f"{code} cannot be allowed"
                    if row
                    else f"unknown code `{code[:60]}` in `allow`",
                    path,
                    expected="a code of the check, or of the audit of the linked kernel",
                    found=stage,
                    suggestions=(f"a similar code exists: {nearest}",) if nearest else (),
                )
            elif not isinstance(reason, str) or len(reason.split()) < SHORTEST:
                why = "write why the diagnostic is harmless in this kernel; the manifest records it"
                self.reject(
                    "PL0077",
                    f"`allow` entry for {code} has no reason",
                    path,
                    expected=f"a reason of at least {SHORTEST} words",
                    found=f"{reason!r:.60}",
                    suggestions=(why,),
                )
            else:
                self.span_of(*path)
                found.append((code, " ".join(reason.split())))
        return tuple(sorted(found))
