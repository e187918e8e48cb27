"""Checks that every port is connected or bound, once, to a port or keyword that fits."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipelink_rules.diagnostics.diagnostic import DiagnosticSink
from pipelink_rules.diagnostics.wording import list_of, similar_name_help
from pipelink_rules.model.contract import Contract, Port
from pipelink_rules.model.program import ConnectionSpec, MegakernelSpec
from pipelink_rules.model.source_span import Span

JOINED = ("ring", "tensor_memory", "registers", "counter", "scratch")  # what `connect` joins
SPACES = {
    "ring": "a shared-memory ring",
    "tensor_memory": "a ring in tensor memory",
    "registers": "a register fragment",
    "global": "a global tensor",
    "scalar": "a scalar",
    "counter": "an array of counters",
    "scratch": "scratch memory",
}
SECTION_OF = {"global": "tensors", "scalar": "scalars"}
UNCONNECTED = {
    ("ring", True): "its role hangs waiting for the first item",
    ("ring", False): "its role hangs once every stage is full",
    ("tensor_memory", True): "its role hangs waiting for the first item",
    ("tensor_memory", False): "its role hangs once every stage is full",
    ("counter", True): "its role hangs waiting for the first signal",
}
End = tuple[str, str]  # (instance, port)


def space_of(port: Port) -> str:
    """Return the space of a port, with scratch memory separate from tensors."""
    return "scratch" if port.scratch else port.space


@dataclass(frozen=True)
class PortPair:
    """A connection whose two ports exist and fit in direction and space."""

    producer: End
    consumer: End
    source: Port
    sink: Port
    span: Span | None

    @property
    def name(self) -> str:
        """Return `load.ab -> mma.ab`, as in messages."""
        return f"{'.'.join(self.producer)} -> {'.'.join(self.consumer)}"


def parse_endpoint(text: str) -> End:
    """Return `load.ab` as (instance, port)."""
    instance, _, port = text.partition(".")
    return instance, port


def check_connections(
    spec: MegakernelSpec, contracts: Mapping[str, Contract], findings: DiagnosticSink
) -> list[PortPair]:
    """Return the valid connections, sorted, and report everything else (PL0051..PL0060).

    contracts: instance -> contract, bound or not.  An instance without one is skipped: its label
    was reported already.
    """
    ports = _Ports(spec, contracts, findings)
    links = [link for entry in spec.connect if (link := ports.link(entry)) is not None]
    _connected_once(links, findings)
    ports.bound()
    ports.unserved()
    return sorted(links, key=lambda link: (link.producer, link.consumer))


class _Ports:
    """The ports of all instances, and which of them an entry mentions."""

    def __init__(
        self, spec: MegakernelSpec, contracts: Mapping[str, Contract], findings: DiagnosticSink
    ):
        self.spec, self.contracts, self.findings = spec, contracts, findings
        self.mentioned: set[End] = set()
        self.suspects: set[str] = set()  # with a misspelled port: others are not reported

    def find(self, text: str, place: Span | None, wanted: tuple[str, ...]) -> Port | None:
        """Return the port that an entry names, or report PL0051."""
        instance, name = parse_endpoint(text)
        contract = self.contracts.get(instance)
        if contract is None:
            return None
        known = {port.name: port for port in contract.ports}
        if name in known:
            self.mentioned.add((instance, name))
            return known[name]
        self.suspects.add(instance)
        fitting = [port.name for port in contract.ports if space_of(port) in wanted]
        self.findings.add(
            "PL0051",
            f"instance `{instance}` has no port `{name}`",
            place,
            (contract.span, f"ports of {contract.component}: {', '.join(known) or 'none'}"),
            suggestions=similar_name_help(name, fitting),
            subject=text,
        )
        return None

    def link(self, entry: ConnectionSpec) -> PortPair | None:
        """Return the connection if both ends exist and fit."""
        where = self.spec.where
        sink = self.find(entry.consumer, where("connect", entry.consumer), JOINED)
        place = where("connect", entry.consumer, entry.producer)
        source = self.find(entry.producer, place, JOINED)
        if sink is None or source is None:
            return None
        fits = self._directions(entry, source, sink) and self._spaces(entry, source, sink)
        ends = (parse_endpoint(entry.producer), parse_endpoint(entry.consumer))
        return PortPair(*ends, source, sink, entry.span) if fits else None

    def _directions(self, entry: ConnectionSpec, source: Port, sink: Port) -> bool:
        if source.direction == "out" and sink.direction == "in":
            return True
        swapped = source.direction == "in" and sink.direction == "out"
        right = f'"{entry.producer}": "{entry.consumer}"'
        self.findings.add(
            "PL0052",
            f"`{entry.consumer}` is an out port and cannot be the consumer of `{entry.producer}`"
            if sink.direction == "out"
            else f"`{entry.producer}` is an in port and cannot be the producer of "
            f"`{entry.consumer}`",
            entry.span,
            (sink.where("direction"), f"`{entry.consumer}` is an {sink.direction} port"),
            (source.where("direction"), f"`{entry.producer}` is an {source.direction} port"),
            expected="an in port on the left, an out port on the right",
            suggestions=(f"swap the sides: {right}",) if swapped else (),
            subject=_name(entry),
        )
        return False

    def _spaces(self, entry: ConnectionSpec, source: Port, sink: Port) -> bool:
        written, read = space_of(source), space_of(sink)
        if written == read and written in JOINED:
            return True
        suggestions = [
            f'bind it to a launcher keyword: {SECTION_OF[space_of(port)]}={{"...": "{end}"}}'
            for end, port in ((entry.consumer, sink), (entry.producer, source))
            if space_of(port) in SECTION_OF
        ]
        if not suggestions:
            suggestions = ["insert a component that reads one and writes the other"]
        self.findings.add(
            "PL0053",
            f"cannot connect `{entry.producer}` ({_space(written)}) to `{entry.consumer}` "
            f"({_space(read)})",
            entry.span,
            (sink.where("space"), f"`{entry.consumer}` is {SPACES.get(read, read)}"),
            (source.where("space"), f"`{entry.producer}` is {SPACES.get(written, written)}"),
            expected="the same space on both ends: ring, tensor memory or registers"
            if {written, read} <= {"ring", "tensor_memory", "registers", *SECTION_OF}
            else "counters to counters, or scratch memory to scratch memory",
            found=f"{written} to {read}",
            suggestions=tuple(suggestions),
            subject=_name(entry),
        )
        return False

    def bound(self) -> None:
        """Report entries of the launcher's keywords with wrong spaces, and double bindings."""
        bound: dict[End, tuple[str, str, str]] = {}
        for section, space, entries in (
            ("tensors", "global", self.spec.tensors),
            ("scalars", "scalar", self.spec.scalars),
        ):
            for keyword, ends in entries:
                for end in ends:
                    clause = (section, keyword, end)
                    port = self.find(end, self.spec.where(*clause), (space,))
                    if port is not None and self._binds(port, clause, bound):
                        bound[parse_endpoint(end)] = clause

    def _binds(
        self, port: Port, clause: tuple[str, str, str], bound: Mapping[End, tuple[str, str, str]]
    ) -> bool:
        section, keyword, end = clause
        space = space_of(port)
        right = SECTION_OF.get(space)
        if right != section:
            self.findings.add(
                "PL0058",
                f"{_space(space)} port `{end}` cannot be bound in `{section}`",
                self.spec.where(*clause),
                (port.where("space"), f"it is {SPACES.get(space, space)}"),
                suggestions=(f"move it to `{right or 'connect'}`",),
                subject=end,
            )
            return False
        first = bound.get(parse_endpoint(end))
        if first is None:
            return True
        self.findings.add(
            "PL0059",
            f"port `{end}` is bound twice",
            (self.spec.where(*clause), f"by `{keyword}`"),
            (self.spec.where(*first), f"also by `{first[1]}`"),
            suggestions=(f"remove it from `{keyword}` or `{first[1]}`",),
            subject=end,
        )
        return False

    def unserved(self) -> None:
        """Report ports that no entry mentions, of instances without a misspelled port."""
        for instance in sorted(self.contracts):
            contract = self.contracts[instance]
            if instance in self.suspects:
                continue
            missing = [
                port for port in contract.ports if (instance, port.name) not in self.mentioned
            ]
            chip = [port for port in missing if space_of(port) in JOINED]
            every = sum(space_of(port) in JOINED for port in contract.ports)
            if len(chip) > 1 and len(chip) == every:
                names = list_of((f"{instance}.{port.name}" for port in chip), "and")
                self.findings.add(
                    "PL0057",
                    f"no port of instance `{instance}` is connected",
                    self.spec.where("instances", instance),
                    suggestions=(f"connect {names}, or remove the instance",),
                    subject=instance,
                )
                chip = []
            for port in chip:
                self._unconnected(instance, port)
            for port in missing:
                if space_of(port) in SECTION_OF:
                    self._unbound(instance, port)

    def _unconnected(self, instance: str, port: Port) -> None:
        end = f"{instance}.{port.name}"
        reads, space = port.direction == "in", space_of(port)
        on_chip = space in ("ring", "registers")
        others = sorted(
            f"{name}.{other.name}"
            for name, contract in self.contracts.items()
            for other in contract.ports
            if space_of(other) == space
            and other.direction != port.direction
            and not (on_chip and name == instance)
            and not (port.space == "registers" and (name, other.name) in self.mentioned)
            and (reads or (name, other.name) not in self.mentioned)
        )
        entries = [f'"{end}": "{other}"' if reads else f'"{other}": "{end}"' for other in others]
        self.findings.add(
            "PL0055" if reads else "PL0056",
            f"{port.direction} port `{end}` is not connected",
            self.spec.where("instances", instance),
            (port.span, f"{'reads' if reads else 'writes'} {SPACES[space]}"),
            at_run_time=UNCONNECTED.get((space, reads), ""),
            suggestions=(f"add to `connect`: {' or '.join(entries[:3])}",) if entries else (),
            subject=end,
        )

    def _unbound(self, instance: str, port: Port) -> None:
        section = SECTION_OF[port.space]
        end = f"{instance}.{port.name}"
        self.findings.add(
            "PL0060",
            f"{port.space} port `{end}` has no entry in `{section}`",
            self.spec.where("instances", instance),
            (port.span, f"it is {SPACES[port.space]}"),
            suggestions=(f'add to `{section}`: "{port.name.lower()}": "{end}"',),
            subject=end,
        )


def _connected_once(links: list[PortPair], findings: DiagnosticSink) -> None:
    """Check that an in port has one producer, and a register port one consumer (PL0054)."""
    seen: dict[End, PortPair] = {}
    for link in sorted(links, key=lambda item: (item.consumer, item.producer)):
        ends = [
            (link.consumer, "in port `{}` has two producers", "remove one of the two connections")
        ]
        if link.source.space == "registers":
            fix = "connect the second consumer to the out port of the first"
            ends.append((link.producer, "register port `{}` has two consumers", fix))
        for end, problem, fix in ends:
            if end in seen:
                findings.add(
                    "PL0054",
                    problem.format(".".join(end)),
                    (link.span, link.name),
                    (seen[end].span, seen[end].name),
                    suggestions=(fix,),
                    subject=".".join(end),
                )
            else:
                seen[end] = link


def _space(space: str) -> str:
    """Return the name of a space without its article: `shared-memory ring`."""
    return SPACES.get(space, space).removeprefix("a ").removeprefix("an ")


def _name(entry: ConnectionSpec) -> str:
    return f"{entry.producer} -> {entry.consumer}"
