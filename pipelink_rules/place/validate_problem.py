"""Is the problem well formed?  What no placement could mean is refused before any arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.model.placement import BARRIER_TABLE, PlacementProblem
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS, Target
from pipelink_rules.place.warps import GROUP

BASE_ALIGN = 1024  # bytes; what the shared base of a launch is aligned to
MOST_WARPS = 1 << 10  # of one role; no SM holds a tenth of it
MOST_REGISTERS = 1 << 12  # of one thread
MOST_STAGES = 1 << 12
LIMIT = 1 << 40  # numbers beyond are a slip, and would make every message unreadable


def validate(problem: PlacementProblem) -> None:
    """Raises PipelinkError with PL0106 (malformed) and PL0701 (warpgroup role), all at once."""
    found = tuple(_findings(problem))
    if found:
        raise PipelinkError(found)


def _findings(problem: PlacementProblem) -> Iterator[Diagnostic]:
    target = TARGETS.get(problem.target)
    if target is None:
        near = get_close_matches(problem.target, TARGETS, n=1)
        yield _malformed(
            f"`{problem.name}` is placed for an unknown target `{problem.target}`",
            problem.span,
            expected=f"one of {', '.join(sorted(TARGETS))}",
            found=problem.target,
            suggestions=(f"did you mean `{near[0]}`?",) if near else (),
        )
        return
    yield from _launch(problem, target)
    yield from _shared(problem)
    yield from _warps(problem)
    yield from _barriers(problem, target)


def _malformed(
    message: str,
    span: Span | None,
    expected: str,
    found: object,
    suggestions: tuple[str, ...] = (),
) -> Diagnostic:
    labels = (Label(span),) if span else ()
    return Diagnostic(
        "PL0106", message, labels, expected=expected, found=str(found), suggestions=suggestions
    )


def _number(
    subject: str, what: str, value: int, low: int, span: Span | None, high: int = LIMIT
) -> Iterator[Diagnostic]:
    if not low <= value <= high:
        limits = f"at least {low}" if value < low and high >= MOST_WARPS else f"{low} to {high}"
        yield _malformed(f"`{subject}` has {what} {value}", span, limits, value)


def _mask(
    problem: PlacementProblem, subject: str, phases: int, span: Span | None
) -> Iterator[Diagnostic]:
    if not 0 < phases < 1 << len(problem.lifetimes):
        yield _malformed(
            f"`{subject}` lives in no phase of `{problem.name}`",
            span,
            f"a mask over the {len(problem.lifetimes)} phases ({', '.join(problem.lifetimes)})",
            f"mask {phases}",
        )


def _unique(kind: str, names: Iterable[tuple[str, Span | None]]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for name, span in names:
        if name in seen:
            yield _malformed(f"two {kind} are called `{name}`", span, "one name each", name)
        seen.add(name)


def _launch(problem: PlacementProblem, target: Target) -> Iterator[Diagnostic]:
    yield from _number(
        problem.name, "occupancy", problem.occupancy, 1, problem.span, target.warps_sm
    )
    if not problem.lifetimes:
        yield _malformed(f"`{problem.name}` has no phase", problem.span, "at least one phase", 0)


def _shared(problem: PlacementProblem) -> Iterator[Diagnostic]:
    channels = {stage.name for stage in problem.stages}
    yield from _unique("shared items", ((item.name, item.span) for item in problem.items))
    yield from _unique("channels", ((stage.name, stage.span) for stage in problem.stages))
    yield from _unique("channels", ((name, None) for name, _ in problem.mbarriers_per_stage))
    for item in problem.items:
        yield from _number(item.name, "a size in bytes of", item.bytes, 1, item.span)
        yield from _mask(problem, item.name, item.lifetimes, item.span)
        if item.name == BARRIER_TABLE:
            yield _malformed(
                f"`{BARRIER_TABLE}` is the name of the mbarrier table",
                item.span,
                "another name",
                item.name,
            )
        if item.align < 1 or item.align & (item.align - 1) or item.align > BASE_ALIGN:
            yield _malformed(
                f"`{item.name}` asks for an alignment of {item.align} bytes",
                item.span,
                f"a power of two up to {BASE_ALIGN}",
                item.align,
            )
        if item.channel and item.channel not in channels:
            yield _unknown_channel(item.name, item.channel, channels, item.span)
    for stage in problem.stages:
        yield from _number(
            stage.name, "a minimum of stages of", stage.minimum, 1, stage.span, MOST_STAGES
        )
        if stage.maximum < stage.minimum:
            yield _malformed(
                f"`{stage.name}` may have {stage.minimum} to {stage.maximum} stages",
                stage.span,
                "a maximum that is not below the minimum",
                stage.maximum,
            )
    for name, count in problem.mbarriers_per_stage:
        yield from _number(name, "mbarriers per stage:", count, 0, problem.span)
        if name not in channels:
            yield _unknown_channel("the mbarrier table", name, channels, problem.span)
    yield from _number(problem.name, "fixed mbarriers:", problem.mbarriers_fixed, 0, problem.span)
    yield from _unique("tensor memory needs", ((need.name, need.span) for need in problem.tensor))
    for need in problem.tensor:
        yield from _number(need.name, "columns:", need.columns, 1, need.span)
        yield from _mask(problem, need.name, need.lifetimes, need.span)
        if need.channel and need.channel not in channels:
            yield _unknown_channel(need.name, need.channel, channels, need.span)


def _unknown_channel(
    subject: str, channel: str, channels: set[str], span: Span | None
) -> Diagnostic:
    near = get_close_matches(channel, sorted(channels), n=1)
    return _malformed(
        f"`{subject}` belongs to an unknown channel `{channel}`",
        span,
        f"one of {', '.join(sorted(channels))}" if channels else "no channel",
        channel,
        (f"did you mean `{near[0]}`?",) if near else (),
    )


def _warps(problem: PlacementProblem) -> Iterator[Diagnostic]:
    yield from _unique("roles", ((role.name, role.span) for role in problem.roles))
    for role in problem.roles:
        yield from _number(role.name, "warps:", role.warps, 1, role.span, MOST_WARPS)
        for what, value in (
            ("a register minimum of", role.minimum),
            ("a register wish of", role.want),
            ("an entry-register floor of", role.entry),
        ):
            yield from _number(role.name, what, value, 0, role.span, MOST_REGISTERS)
        if role.warpgroup and role.warps % GROUP:
            yield Diagnostic(
                "PL0701",
                f"role `{role.name}` works in warpgroups but has {role.warps} warps",
                (Label(role.span, "declared here"),) if role.span else (),
                expected="a multiple of 4 warps, starting at a multiple of 4",
                found=f"{role.warps} warps",
                at_run_time="wgmma and setmaxnreg are undefined unless all 4 warps of a "
                "warpgroup execute them",
                suggestions=(f"give it {-(-role.warps // GROUP) * GROUP} warps",),
                subject=role.name,
            )


def _barriers(problem: PlacementProblem, target: Target) -> Iterator[Diagnostic]:
    yield from _unique("named barriers", ((need.name, need.span) for need in problem.barriers))
    for need in problem.barriers:
        yield from _mask(problem, need.name, need.lifetimes, need.span)
    for number in problem.reserved_barriers:
        yield from _number(
            problem.name,
            "a reserved named barrier",
            number,
            0,
            problem.span,
            high=target.named_barriers - 1,
        )
    if len(set(problem.reserved_barriers)) >= target.named_barriers:
        yield _malformed(
            f"`{problem.name}` reserves every named barrier",
            problem.span,
            "at least one left",
            f"{target.named_barriers} reserved",
        )
