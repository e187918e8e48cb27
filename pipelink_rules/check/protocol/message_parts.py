"""Wording that the diagnostics of a protocol share."""

from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.check.protocol.analyze import Found
from pipelink_rules.check.protocol.model import Origin
from pipelink_rules.check.protocol.protocol_problems import Problem
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.program import HANDOVER, TENSOR_MEMORY
from pipelink_rules.model.source_span import Span


def subject_of(index: ProgramIndex, problem: Problem) -> str:
    """Return the connection of a barrier or memory, else the buffer or named barrier."""
    origins = [origin for origin in problem.origins if origin]
    channel = index.protocol.channel_of.get(problem.target)
    if channel is not None:
        return index.connection(channel, *(origin.end for origin in origins)).name
    return qualified_name(origins[0].end) if origins else problem.target


def notes_of(index: ProgramIndex, case: Found[Problem], *targets: str) -> tuple[str, ...]:
    """Return the stages and work tiles of the case; nothing if there is only one case."""
    parts = []
    for target in targets:
        channel = index.protocol.channel_of.get(target)
        if channel is not None and channel.minimum != channel.maximum:
            part = f"{plural(case.stages[channel.name], 'stage')} in `{channel.name}`"
            if part not in parts:
                parts.append(part)
    loops = index.protocol.loops
    fields = [
        ", ".join(f"{name}={value}" for name, value in work.items() if name in loops)
        for work in case.work
    ]
    if any(fields):
        parts.append(", then ".join(fields))
    return ("found with " + ", ".join(parts),) if parts else ()


def memory_of(index: ProgramIndex, target: str, origin: Origin) -> str:
    """Describe the memory of an access: `ring ab`, `buffer staging`, `the handover of acc`."""
    channel = index.protocol.channel_of.get(target)
    if channel is None:
        return f"buffer `{origin.name}`"
    if channel.kind == HANDOVER:
        return f"the handover of `{qualified_name(channel.producer)}`"
    where = "tensor memory" if channel.kind == TENSOR_MEMORY else "ring"
    return f"{where} `{qualified_name(channel.producer)}`"


def file_of(span: Span | None) -> str:
    """Return ` in <file>`, or ""."""
    return f" in {span.file}" if span else ""
