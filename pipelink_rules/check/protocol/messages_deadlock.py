"""Diagnostics about liveness: the wait cycle, and the stage counts that break it."""

from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.check.protocol.analyze import Found, is_live
from pipelink_rules.check.protocol.event_graph import EventGraph
from pipelink_rules.check.protocol.message_parts import notes_of
from pipelink_rules.check.protocol.model import Action, Kind
from pipelink_rules.check.protocol.protocol_problems import Deadlock, Edge, StarvedWait
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.program import RING, Channel

MOST_STAGES = 32


def deadlock(index: ProgramIndex, case: Found[Deadlock]) -> Diagnostic:
    """PL0401: roles wait for each other in a cycle."""
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
            "reorder the operations of one of these roles so that it arrives before it waits",
        )
    return report(
        "PL0401",
        f"deadlock: {' and '.join(f'`{owner}`' for owner in owners)} wait for each other"
        if len(owners) > 1
        else f"deadlock: `{owners[0]}` waits for itself",
        *((action.origin.span, _label(action)) for action in steps),
        *((index.connection(channel).span, "") for channel in channels),
        expected="a distance of at least 1 (stage or work tile) in every wait cycle",
        found=f"a distance of {problem.distance}" + _with(case, channels),
        at_run_time="the kernel always hangs",
        notes=notes_of(index, case, *targets),
        chain=_lines(steps),
        suggestions=suggestions,
        subject=subject,
    )


def _with(case: Found[Deadlock], channels: list[Channel]) -> str:
    rings = dict.fromkeys(channel.name for channel in channels)
    parts = [f"{plural(case.stages[name], 'stage')} in `{name}`" for name in rings]
    return " with " + ", ".join(parts) if parts else ""


def _steps(graph: EventGraph, cycle: tuple[Edge, ...]) -> list[Action]:
    """Return the actions on the cycle that wait or are waited for, in order of execution."""
    nodes = [node for node, _, _ in cycle]
    kept = []
    for place, node in enumerate(nodes):
        action = graph.actions[node]
        around = (nodes[place - 1], nodes[(place + 1) % len(nodes)])
        if action is not None and any(graph.actions[other] is None for other in around):
            kept.append(action)
    return kept


def _label(action: Action) -> str:
    return "waits here" if action.kind in (Kind.WAIT, Kind.MEET) else "arrives only here"


def _name(action: Action) -> str:
    return f"`{action.origin.text}`"


def _lines(steps: list[Action]) -> tuple[str, ...]:
    """Return the cycle backwards: which operation a role waits for, and why it is not reached."""
    lines = []
    for place in range(len(steps) - 1, -1, -1):
        action, earlier = steps[place], steps[place - 1]
        owner = action.origin.owner
        if action.kind in (Kind.WAIT, Kind.MEET) and earlier.kind not in (Kind.WAIT, Kind.MEET):
            lines.append(
                f"{owner} waits at {_name(action)} for {_name(earlier)} of {earlier.origin.owner}"
            )
        else:
            lines.append(f"{owner} reaches {_name(action)} only after {_name(earlier)}")
    return tuple(lines)


def _more_stages(
    index: ProgramIndex, case: Found[Deadlock], channels: list[Channel]
) -> tuple[str, ...]:
    """Return the smallest stage counts that break the cycle, one ring at a time."""
    found = []
    for channel in {channel.name: channel for channel in channels}.values():
        have = case.stages[channel.name]
        for stages in range(have + 1, have + MOST_STAGES):
            if is_live(index.protocol, {**case.stages, channel.name: stages}, case.work):
                more = (stages - have) * channel.stage_bytes
                found.append((more, _stages_help(channel, stages, more)))
                break
    return tuple(text for _, text in sorted(found))


def _stages_help(channel: Channel, stages: int, more: int) -> str:
    if channel.kind == RING and stages <= channel.maximum and channel.minimum != channel.maximum:
        edit = f"set `stages: {{min: {stages}}}` on port `{channel.producer[1]}`"
    else:
        edit = f"declare {plural(stages, 'stage')} for `{channel.name}`"
    return f"{edit} ({more:,} more bytes of shared memory)"


def starved_wait(index: ProgramIndex, case: Found[StarvedWait]) -> Diagnostic:
    """PL0401: the last wait of a role is for an arrival that no role performs."""
    problem = case.problem
    origin, found, wanted = problem.action.origin, problem.found, problem.expected
    role = index.contracts[origin.instance].role(origin.role)
    return report(
        "PL0401",
        f"deadlock: the last `{origin.text}` of `{origin.owner}` never completes",
        (origin.span, f"the last one gets {found} of {wanted} arrivals"),
        (role.where("prologue"), "one more before the first work tile"),
        expected=plural(wanted, "arrival"),
        found=plural(found, "arrival"),
        at_run_time="the kernel always hangs after its last work tile",
        suggestions=(
            f"let the other roles of `{origin.name}` arrive once more, in a prologue or epilogue",
        ),
        subject=qualified_name(origin.end),
    )
