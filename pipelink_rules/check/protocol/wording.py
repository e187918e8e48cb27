"""Words that the findings of a protocol share."""

from __future__ import annotations

from pipelink_rules.check.program_index import End, ProgramIndex, qualified_name
from pipelink_rules.check.protocol.analyze import Found
from pipelink_rules.check.protocol.model import Action
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.wording import count
from pipelink_rules.model.program import HANDOVER, TENSOR_MEMORY, Channel, Connection
from pipelink_rules.model.source_span import Span


def end_of(action: Action) -> End:
    """(instance, port) of an action."""
    return action.origin.instance, action.origin.name


def connection_of(resolved: ProgramIndex, channel: Channel, *actions: Action | None) -> Connection:
    """The connection a channel problem belongs to: that of the consumer which takes part."""
    return resolved.connection(channel, *(end_of(action) for action in actions if action))


def subject_of(
    resolved: ProgramIndex, blueprint: ProtocolIndex, target: str, *actions: Action | None
) -> str:
    """The connection behind a barrier or memory, or the buffer, or the role."""
    channel = blueprint.channel_of.get(target)
    if channel is not None:
        return connection_of(resolved, channel, *actions).name
    first = next((action for action in actions if action), None)
    return qualified_name(end_of(first)) if first else target


def case_of(blueprint: ProtocolIndex, item: Found, *targets: str) -> str:
    """For which stages and work items it was found; "" where there is only one case."""
    parts = []
    for target in targets:
        channel = blueprint.channel_of.get(target)
        if channel is not None and channel.minimum != channel.maximum:
            said = f"{count(item.stages[channel.name], 'stage')} of {channel.name}"
            if said not in parts:
                parts.append(said)
    loops = blueprint.loops
    fields = [
        ", ".join(f"{name}={value}" for name, value in work.items() if name in loops)
        for work in item.work
    ]
    if any(fields):
        parts.append("work items of " + ", then ".join(fields))
    return "found with " + " and ".join(parts) if parts else ""


def notes_of(blueprint: ProtocolIndex, item: Found, *targets: str) -> tuple[str, ...]:
    """`case_of` as notes."""
    case = case_of(blueprint, item, *targets)
    return (case,) if case else ()


def what_of(blueprint: ProtocolIndex, target: str, action: Action) -> str:
    """The memory of an access in words: `ring ab`, `buffer staging`, `the hand-over of acc`."""
    channel = blueprint.channel_of.get(target)
    if channel is None:
        return f"buffer `{action.origin.name}`"
    if channel.kind == HANDOVER:
        return f"the hand-over of `{qualified_name(channel.producer)}`"
    where = "tensor memory" if channel.kind == TENSOR_MEMORY else "ring"
    return f"{where} `{qualified_name(channel.producer)}`"


def file_of(span: Span | None) -> str:
    """` in <file>`, or ""."""
    return f" in {span.file}" if span else ""
