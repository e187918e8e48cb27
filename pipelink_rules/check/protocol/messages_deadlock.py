"""Findings about liveness: the cycle as a chain of "waits for", and the stages that break it."""

from __future__ import annotations

from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.check.protocol.analyze import Found, is_live
from pipelink_rules.check.protocol.event_graph import EventGraph
from pipelink_rules.check.protocol.message_parts import notes_of
from pipelink_rules.check.protocol.model import Action, Kind
from pipelink_rules.check.protocol.protocol_problems import Deadlock, Edge, StarvedWait
from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.program import RING, Channel

MOST_STAGES = 32


def deadlock(index: ProgramIndex, case: Found[Deadlock]) -> Diagnostic:
    """PL0401: every role on a cycle waits for the next one."""
    problem = case.problem
    steps = _steps(EventGraph(case.composition), problem.cycle)
    targets, channel_of = problem.targets, index.protocol.channel_of
    channels = [channel_of[target] for target in targets if target in channel_of]
    names = sorted({index.connection(channel).name for channel in channels})
    named = sorted({target for target in targets if target not in channel_of})
    subject = ", ".join([*names, *named])
    owners = list(dict.fromkeys(action.origin.owner for action in steps))
    suggestions = _more_stages(index, case, channels)
    if not suggestions:
        suggestions = (
            "reorder the operations of one of these roles, so that it gives before it takes",
        )
    return Diagnostic(
        "PL0401",
        f"{' and '.join(f'`{owner}`' for owner in owners)} can wait for each other for ever",
        labels(
            *((action.origin.span, _said(action)) for action in steps),
            *((index.connection(channel).span, "") for channel in channels),
        ),
        expected="every cycle of waits spans at least one work item or stage",
        found=f"a cycle of distance {problem.distance}" + _with(case, channels),
        at_run_time="the kernel hangs",
        notes=notes_of(index, case, *targets),
        chain=_lines(steps),
        suggestions=suggestions,
        subject=subject,
    )


def _with(case: Found[Deadlock], channels: list[Channel]) -> str:
    rings = dict.fromkeys(channel.name for channel in channels)
    said = [f"{plural(case.stages[name], 'stage')} of {name}" for name in rings]
    return " with " + ", ".join(said) if said else ""


def _steps(graph: EventGraph, cycle: tuple[Edge, ...]) -> list[Action]:
    """The actions on the cycle that wait or are waited for, in order of execution."""
    nodes = [node for node, _, _ in cycle]
    kept = []
    for place, node in enumerate(nodes):
        action = graph.actions[node]
        around = (nodes[place - 1], nodes[(place + 1) % len(nodes)])
        if action is not None and any(graph.actions[other] is None for other in around):
            kept.append(action)
    return kept


def _said(action: Action) -> str:
    return "waits here" if action.kind in (Kind.WAIT, Kind.MEET) else "gives only here"


def _name(action: Action) -> str:
    return f"`{action.origin.text}`"


def _lines(steps: list[Action]) -> tuple[str, ...]:
    """Backwards along the cycle: who waits for whom, and why that one has not come."""
    lines = []
    for place in range(len(steps) - 1, -1, -1):
        action, earlier = steps[place], steps[place - 1]
        owner = action.origin.owner
        if action.kind in (Kind.WAIT, Kind.MEET) and earlier.kind not in (Kind.WAIT, Kind.MEET):
            lines.append(
                f"{owner} waits at {_name(action)} for {_name(earlier)} of {earlier.origin.owner}"
            )
        else:
            lines.append(f"{owner} comes to {_name(action)} only after {_name(earlier)}")
    return tuple(lines)


def _more_stages(
    index: ProgramIndex, case: Found[Deadlock], channels: list[Channel]
) -> tuple[str, ...]:
    """The smallest stage counts that break the cycle, one ring at a time."""
    found = []
    for channel in {channel.name: channel for channel in channels}.values():
        have = case.stages[channel.name]
        for stages in range(have + 1, have + MOST_STAGES):
            if is_live(index.protocol, {**case.stages, channel.name: stages}, case.work):
                more = (stages - have) * channel.stage_bytes
                found.append((more, _ask(channel, stages, more)))
                break
    return tuple(text for _, text in sorted(found))


def _ask(channel: Channel, stages: int, more: int) -> str:
    if channel.kind == RING and stages <= channel.maximum and channel.minimum != channel.maximum:
        where = f"set `stages: {{min: {stages}}}` of port `{channel.producer[1]}`"
    else:
        where = f"give `{channel.name}` {plural(stages, 'stage')}"
    return f"{where}: {more} bytes of shared memory more"


def starved_wait(index: ProgramIndex, case: Found[StarvedWait]) -> Diagnostic:
    """PL0401: the last wait of a role is for an arrival that nobody makes."""
    problem = case.problem
    origin, found, wanted = problem.action.origin, problem.found, problem.expected
    role = index.contracts[origin.instance].role(origin.role)
    return Diagnostic(
        "PL0401",
        f"the last `{origin.text}` of `{origin.owner}` waits for ever",
        labels(
            (origin.span, f"{found} of {wanted} arrivals come to the last one"),
            (role.where("prologue"), "one more before the first work item"),
        ),
        expected="every role to come as often as those it waits for",
        found=f"{found} of {wanted} arrivals",
        at_run_time="the kernel hangs after its last work item",
        suggestions=(
            f"let the other roles of `{origin.name}` come once more, in a prologue or epilogue",
        ),
        subject=qualified_name(origin.end),
    )
