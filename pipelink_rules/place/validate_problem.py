"""Validation of a placement problem before any arithmetic: names, numbers, targets, warpgroups."""

from collections.abc import Iterable, Iterator

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError, report
from pipelink_rules.diagnostics.wording import nearest, plural
from pipelink_rules.model.placement import BARRIER_TABLE, PlacementProblem
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS, Target
from pipelink_rules.place.warps import GROUP

BASE_ALIGN = 1024  # bytes; what the shared base of a launch is aligned to
MOST_WARPS = 1 << 10  # of one role; no SM holds a tenth of it
MOST_REGISTERS = 1 << 12  # of one thread
MOST_STAGES = 1 << 12
LIMIT = 1 << 40  # larger numbers are typing errors


def validate(problem: PlacementProblem) -> None:
    """Raise PipelinkError with every PL0106 (malformed) and PL0701 (warpgroup role)."""
    found = tuple(_errors(problem))
    if found:
        raise PipelinkError(found)


def _errors(problem: PlacementProblem) -> Iterator[Diagnostic]:
    target = TARGETS.get(problem.target)
    if target is None:
        message = f"unknown target `{problem.target}` of `{problem.name}`"
        yield _unknown("target", problem.target, TARGETS, message, problem.span)
        return
    most = target.warps_sm
    yield from _number(problem.name, "occupancy", problem.occupancy, 1, problem.span, most)
    if not problem.lifetimes:
        yield _malformed(f"`{problem.name}` has no lifetime", problem.span, "at least 1", 0)
    yield from _shared(problem)
    yield from _warps(problem)
    yield from _barriers(problem, target)


def _malformed(
    message: str, span: Span | None, expected: str, found: object, *suggestions: str
) -> Diagnostic:
    return report(
        "PL0106", message, span, expected=expected, found=str(found), suggestions=suggestions
    )


def _unknown(
    kind: str, name: str, known: Iterable[str], message: str, span: Span | None
) -> Diagnostic:
    near = nearest(name, known)
    suggestions = [f"a {kind} with a similar name exists: `{near}`"] if near else []
    expected = f"one of {', '.join(sorted(known))}" if known else f"no {kind}"
    return _malformed(message, span, expected, name, *suggestions)


def _number(
    subject: str, what: str, value: int, low: int, span: Span | None, high: int = LIMIT
) -> Iterator[Diagnostic]:
    if not low <= value <= high:
        limits = f"at least {low}" if value < low and high >= MOST_WARPS else f"{low} to {high}"
        yield _malformed(f"invalid value {value} for {what} of `{subject}`", span, limits, value)


def _mask(
    problem: PlacementProblem, subject: str, lifetimes: int, span: Span | None
) -> Iterator[Diagnostic]:
    if not 0 < lifetimes < 1 << len(problem.lifetimes):
        names = ", ".join(problem.lifetimes)
        expected = f"a mask over {plural(len(problem.lifetimes), 'lifetime')} ({names})"
        message = f"`{subject}` is live in no lifetime of `{problem.name}`"
        yield _malformed(message, span, expected, f"mask {lifetimes}")


def _unique(kind: str, names: Iterable[tuple[str, Span | None]]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for name, span in names:
        if name in seen:
            yield _malformed(f"duplicate name `{name}` of {kind}", span, "unique names", name)
        seen.add(name)


def _shared(problem: PlacementProblem) -> Iterator[Diagnostic]:
    channels = {stage.name for stage in problem.stages}
    yield from _unique("allocations", ((item.name, item.span) for item in problem.items))
    yield from _unique("channels", ((stage.name, stage.span) for stage in problem.stages))
    yield from _unique("channels", ((name, None) for name, _ in problem.mbarriers_per_stage))
    for item in problem.items:
        yield from _number(item.name, "the size in bytes", item.bytes, 1, item.span)
        yield from _mask(problem, item.name, item.lifetimes, item.span)
        if item.name == BARRIER_TABLE:
            message = f"the name `{BARRIER_TABLE}` is reserved for the mbarrier table"
            yield _malformed(message, item.span, "another name", item.name)
        if item.align < 1 or item.align & (item.align - 1) or item.align > BASE_ALIGN:
            message = f"invalid value {item.align} for the alignment of `{item.name}`"
            expected = f"a power of two up to {BASE_ALIGN}"
            yield _malformed(message, item.span, expected, item.align)
        if item.channel and item.channel not in channels:
            yield _unknown_channel(item.name, item.channel, channels, item.span)
    for stage in problem.stages:
        yield from _number(
            stage.name, "the minimum stage count", stage.minimum, 1, stage.span, MOST_STAGES
        )
        if stage.maximum < stage.minimum:
            yield _malformed(
                f"the maximum stage count of `{stage.name}` is below its minimum",
                stage.span,
                f"at least {stage.minimum}",
                stage.maximum,
            )
    for name, count in problem.mbarriers_per_stage:
        yield from _number(name, "the mbarriers per stage", count, 0, problem.span)
        if name not in channels:
            yield _unknown_channel("the mbarrier table", name, channels, problem.span)
    fixed = problem.mbarriers_fixed
    yield from _number(problem.name, "the fixed mbarriers", fixed, 0, problem.span)
    requests = ((need.name, need.span) for need in problem.tensor)
    yield from _unique("tensor memory requests", requests)
    for need in problem.tensor:
        yield from _number(need.name, "the column count", need.columns, 1, need.span)
        yield from _mask(problem, need.name, need.lifetimes, need.span)
        if need.channel and need.channel not in channels:
            yield _unknown_channel(need.name, need.channel, channels, need.span)


def _unknown_channel(
    subject: str, channel: str, channels: set[str], span: Span | None
) -> Diagnostic:
    message = f"unknown channel `{channel}` of `{subject}`"
    return _unknown("channel", channel, channels, message, span)


def _warps(problem: PlacementProblem) -> Iterator[Diagnostic]:
    yield from _unique("roles", ((role.name, role.span) for role in problem.roles))
    for role in problem.roles:
        yield from _number(role.name, "the warp count", role.warps, 1, role.span, MOST_WARPS)
        for what, value in (
            ("the register minimum", role.minimum),
            ("the register request", role.want),
            ("the entry register minimum", role.entry),
        ):
            yield from _number(role.name, what, value, 0, role.span, MOST_REGISTERS)
        if role.warpgroup and role.warps % GROUP:
            yield report(
                "PL0701",
                f"role `{role.name}` requires warpgroups but has {plural(role.warps, 'warp')}",
                (role.span, "declared here"),
                expected="a multiple of 4 warps, starting at a multiple of 4",
                found=plural(role.warps, "warp"),
                at_run_time="wgmma and setmaxnreg have undefined behavior unless all 4 warps of a "
                "warpgroup execute them",
                suggestions=(f"set `warps` of the role to {-(-role.warps // GROUP) * GROUP}",),
                subject=role.name,
            )


def _barriers(problem: PlacementProblem, target: Target) -> Iterator[Diagnostic]:
    yield from _unique("named barriers", ((need.name, need.span) for need in problem.barriers))
    for need in problem.barriers:
        yield from _mask(problem, need.name, need.lifetimes, need.span)
    for number in problem.reserved_barriers:
        most = target.named_barriers - 1
        yield from _number(problem.name, "a reserved named barrier", number, 0, problem.span, most)
    if len(set(problem.reserved_barriers)) >= target.named_barriers:
        yield _malformed(
            f"`{problem.name}` reserves every named barrier",
            problem.span,
            f"at most {target.named_barriers - 1} reserved",
            f"{target.named_barriers} reserved",
        )
