"""What do the operations of a role say?  `release ab lag 1` -> Op, its target checked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pipelink_rules.contract.block_parser import Block
from pipelink_rules.contract.findings import ContractFindings
from pipelink_rules.contract.operation_index import read_index, split_index
from pipelink_rules.contract.yaml_tree import MappingNode, Node, ScalarNode
from pipelink_rules.diagnostics.diagnostic import Label
from pipelink_rules.diagnostics.wording import list_of, similar_name_help
from pipelink_rules.model.contract import Buffer, NamedBarrier, Operation, Port, Repeat
from pipelink_rules.model.operation import operations
from pipelink_rules.model.source_span import Expr, Span

RINGS_IN, RINGS_OUT = ("ring in", "tensor_memory in"), ("ring out", "tensor_memory out")
# verb -> (form, kinds of the target)
VERBS: dict[str, tuple[str, tuple[str, ...]]] = {
    "acquire": ("acquire RING", RINGS_OUT),
    "expect": ("expect RING", ("ring out",)),
    "copy": ("copy TENSOR -> RING.MEMBER", ("ring out",)),
    "write": ("write TARGET", (*RINGS_OUT, "buffer", "registers out", "global out")),
    "commit": ("commit RING, commit mma -> RING", RINGS_OUT),
    "wait": ("wait RING", RINGS_IN),
    "read": ("read SOURCE", (*RINGS_IN, "buffer", "registers in", "global in")),
    "mma": ("mma RING, mma RING -> TENSOR_MEMORY", ("ring in",)),
    "await": ("await mma N, await store N [full], await tensor load, await tensor store", ()),
    "release": ("release RING [lag N]", RINGS_IN),
    "store": ("store SOURCE -> TENSOR", ("ring in", "buffer")),
    "fence": ("fence async, fence tensor before, fence tensor after, fence global", ()),
    "sync": ("sync BARRIER", ("named barrier",)),
    "arrive": ("arrive BARRIER", ("named barrier",)),
    "signal": ("signal COUNTER[FIELD]", ("counter out",)),
    "wait_until": ("wait_until COUNTER[FIELD] SIGNALS", ("counter in",)),
}
# What a role may do outside its work items, where the glue calls the runtime for it.
OUTSIDE = frozenset({"await", "fence", "sync", "arrive"})
REPEAT_KEYS = {"repeat": True, "body": True}
LARGEST_COUNT = 64  # of `await` and `lag`
DEEPEST_REPEAT = 4

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_FORMS = {
    "copy": re.compile(rf"copy ({_NAME}) ?-> ?({_NAME})\.({_NAME})"),
    "commit": re.compile(rf"commit (?:(mma) ?-> ?)?({_NAME})"),
    "mma": re.compile(rf"mma ({_NAME})(?: ?-> ?({_NAME}))?"),
    "await": re.compile(r"await (?:(mma|store) ([0-9]+)( full)?|(tensor (?:load|store)))"),
    "release": re.compile(rf"release ({_NAME})(?: lag ([0-9]+))?"),
    "store": re.compile(rf"store ({_NAME}) ?-> ?({_NAME})"),
    "fence": re.compile(r"fence (async|tensor before|tensor after|global)"),
    "wait_until": re.compile(rf"wait_until ({_NAME}) (.+)"),
}
_ONE = re.compile(rf"({'|'.join(VERBS)}) ({_NAME})")


@dataclass(frozen=True)
class OperationScope:
    """What the operations of one role may name."""

    role: str
    ports: Mapping[str, Port]
    buffers: Mapping[str, Buffer]
    barriers: Mapping[str, NamedBarrier]
    roles: Collection[str] = ()  # all declared roles
    complete: bool = True  # False: some declaration is unreadable, so unknown names are not judged

    def kind(self, name: str) -> str:
        """`ring out`, `buffer`, `named barrier`, ...; "" where the name is not declared."""
        if name in self.ports:
            return f"{self.ports[name].space} {self.ports[name].direction}"
        return (
            "buffer" if name in self.buffers else "named barrier" if name in self.barriers else ""
        )

    def owners(self, name: str) -> tuple[str, ...]:
        """The roles that may use it."""
        if name in self.ports:
            return (self.ports[name].role,)
        return (self.buffers[name].role,) if name in self.buffers else self.barriers[name].roles

    def span(self, name: str) -> Span | None:
        """Where it is declared."""
        item = self.ports.get(name) or self.buffers.get(name) or self.barriers.get(name)
        return item.span if item else None


def read_body(block: Block, key: str, reach: OperationScope) -> tuple[Operation | Repeat, ...]:
    """The operations of `prologue`, `body` or `epilogue`."""
    nodes = block.items(key, "operations")
    return _read(block, key, nodes, reach, 0)


def uses_mma(body: tuple[Operation | Repeat, ...]) -> bool:
    """Whether some operation is a wgmma group."""
    return any(op.wgmma for op in operations(body))


def _read(
    block: Block, key: str, nodes: tuple[Node, ...], reach: OperationScope, depth: int
) -> tuple[Operation | Repeat, ...]:
    found: list[Operation | Repeat] = []
    for node in nodes:
        if isinstance(node, ScalarNode):
            if (op := _operation(block.findings, node, reach, key)) is not None:
                found.append(op)
        elif isinstance(node, MappingNode):
            if (repeat := _repeat(block, key, node, reach, depth)) is not None:
                found.append(repeat)
        else:
            block.wrong(node, "an operation or a repeat", f"this part of {block.named(key)}")
    return tuple(found)


def _repeat(
    block: Block, key: str, node: MappingNode, reach: OperationScope, depth: int
) -> Repeat | None:
    inner = Block(block.findings, node, "a repeat", node.span, REPEAT_KEYS)
    if depth >= DEEPEST_REPEAT:
        block.findings.add(
            "PL0014", f"repeats are nested more than {DEEPEST_REPEAT} deep", node.span
        )
        return None
    count = inner.expr("repeat", ("param", "field"))
    nodes = inner.items("body", "operations")
    read = _read(block, key, nodes, reach, depth + 1)
    return Repeat(count or Expr("1"), read, inner.keys.get("repeat", node.span))


def _operation(
    findings: ContractFindings, node: ScalarNode, reach: OperationScope, key: str
) -> Operation | None:
    text = " ".join(node.text.split())
    verb = text.split(" ")[0] if text else ""
    if verb not in VERBS:
        findings.add(
            "PL0014",
            f"`{text[:60]}` is not an operation" if text else "an operation is missing here",
            node.span,
            expected="one of " + ", ".join(VERBS),
            found=verb[:40],
            suggestions=similar_name_help(verb, VERBS),
        )
        return None
    indexed = split_index(text)
    op = _parse(verb, indexed.text)
    if op is None:
        findings.add(
            "PL0014",
            f"`{text[:60]}` is not a complete operation",
            node.span,
            expected=VERBS[verb][0],
            found=text[:60],
        )
        return None
    known = bool(reach.kind(indexed.name))
    op = read_index(findings, node, replace(op, span=node.span), indexed, reach.ports, known)
    if max(op.count, op.lag) > LARGEST_COUNT:
        findings.add("PL0017", f"`{text}` counts beyond {LARGEST_COUNT}", node.span)
    if key != "body" and (verb not in OUTSIDE or op.target == "mma"):
        findings.add(
            "PL0018",
            f"`{text}` does not apply to `{key}` of role `{reach.role}`: it has no work item",
            node.span,
            suggestions=("move it into `body`",),
        )
    _check_target(findings, node, reach, op)
    return op


def _parse(verb: str, text: str) -> Operation | None:
    matched = _FORMS.get(verb, _ONE).fullmatch(text)
    if matched is None:
        return None
    part = matched.groups()
    if verb == "copy":
        return Operation(verb, part[1], member=part[2], source=part[0])
    if verb == "mma":
        return Operation(verb, part[0], source=part[1] or "")
    if verb == "commit":
        return Operation(verb, part[1], source=part[0] or "")
    if verb == "await":
        if part[3] or (part[2] and part[0] != "store"):
            return Operation(verb, part[3]) if part[3] else None
        return Operation(verb, part[0], count=int(part[1][:6]), full=bool(part[2]))
    if verb == "release":
        return Operation(verb, part[0], lag=int((part[1] or "0")[:6]))
    if verb == "store":
        return Operation(verb, part[0], source=part[1])
    if verb == "wait_until":
        return Operation(verb, part[0], threshold=Expr(part[1]))
    return Operation(verb, part[0] if verb == "fence" else part[1])


def _check_target(
    findings: ContractFindings, node: ScalarNode, reach: OperationScope, op: Operation
) -> None:
    wanted = VERBS[op.verb][1]
    if op.verb == "commit" and op.source:
        wanted = ("ring in", "tensor_memory out")
    if (
        wanted
        and _check_name(findings, node, reach, op.verb, op.target, wanted)
        and op.verb == "copy"
    ):
        members = [member.name for member in reach.ports[op.target].members]
        if members and op.member not in members:
            findings.add(
                "PL0015",
                f"an item of `{op.target}` has no tile `{op.member}`",
                _part(node, f"{op.target}.{op.member}"),
                suggestions=similar_name_help(op.member, members),
            )
    spaces = {"copy": "global in", "store": "global out", "mma": "tensor_memory out"}
    if op.verb in spaces and op.source:
        _check_name(findings, node, reach, op.verb, op.source, (spaces[op.verb],))


def _check_name(
    findings: ContractFindings,
    node: ScalarNode,
    reach: OperationScope,
    verb: str,
    name: str,
    wanted: tuple[str, ...],
) -> bool:
    everything = {**reach.ports, **reach.buffers, **reach.barriers}
    fitting = [other for other in everything if reach.kind(other) in wanted]
    kind = reach.kind(name)
    span = _part(node, name)
    if not kind:
        if reach.complete:
            findings.add(
                "PL0015",
                f"`{verb}` names `{name}`, which is not declared",
                span,
                expected=_kinds(wanted),
                found=name,
                suggestions=similar_name_help(name, fitting, "it can be used on"),
            )
        return False
    declared = reach.span(name)
    there = (Label(declared, "declared here"),) if declared else ()
    if kind not in wanted:
        findings.add(
            "PL0015",
            f"`{verb}` cannot be used on `{name}`",
            span,
            *there,
            expected=_kinds(wanted),
            found=_kinds((kind,)),
            suggestions=similar_name_help(name, fitting, "it can be used on"),
        )
        return False
    if reach.role not in reach.owners(name):
        if not set(reach.owners(name)) <= set(reach.roles):
            return False  # the declaration names an unknown role, and is a finding itself
        owners = list_of(reach.owners(name), "and")
        findings.add(
            "PL0015",
            f"role `{reach.role}` uses `{name}`, which belongs to role {owners}",
            span,
            *there,
            suggestions=(
                (f"add `{reach.role}` to the roles of `{name}`",)
                if kind == "named barrier"
                else (f"move the operation to role {owners}",)
            ),
        )
        return False
    return True


def _kinds(kinds: tuple[str, ...]) -> str:
    names = {
        "ring out": "a ring out port",
        "ring in": "a ring in port",
        "tensor_memory out": "a tensor-memory out port",
        "tensor_memory in": "a tensor-memory in port",
        "registers out": "a register out port",
        "registers in": "a register in port",
        "global out": "a global out port",
        "global in": "a global in port",
        "scalar in": "a scalar port",
        "counter out": "a counter out port",
        "counter in": "a counter in port",
        "buffer": "a buffer",
        "named barrier": "a named barrier",
    }
    *others, last = (names.get(kind, kind) for kind in kinds)
    return f"{', '.join(others)} or {last}" if others else last


def _part(node: ScalarNode, word: str) -> Span:
    """The place of a word inside an operation."""
    at = re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", node.text[1:])
    offset = 0 if node.plain else 1
    if at is None or node.span.length != len(node.text) + 2 * offset:
        return node.span
    return replace(node.span, column=node.span.column + at.start() + 1 + offset, length=len(word))
