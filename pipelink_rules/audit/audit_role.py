"""Comparison of each role's code with its contract: PTX and variant -> PL0915 to PL0937."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pipelink_rules.audit.audit_scheduler import (
    CtaPosition,
    scheduler_difference,
    tiles_difference,
)
from pipelink_rules.audit.compare import (
    Difference,
    ScratchSlices,
    StageRotation,
    access_differences,
    first_difference,
    missing_accesses,
)
from pipelink_rules.audit.compared_values import (
    check_functions,
    compared_values,
    reachable_functions,
)
from pipelink_rules.audit.control_flow import function_code
from pipelink_rules.audit.execution_log import Copied
from pipelink_rules.audit.expected_trace import ExpectedTile, expected_tiles
from pipelink_rules.audit.input_cases import (
    RoleRun,
    field_values,
    input_case,
    input_cases,
    loop_fields,
)
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.lanes import DivergedError, VariesError, WarpsDifferError
from pipelink_rules.audit.machine_state import (
    InconclusiveError,
    RestrictionError,
)
from pipelink_rules.audit.opcode_table import check_opcode
from pipelink_rules.audit.raw_lanes import LocatedDifference, compare_lanes, diverged_difference
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import RINGS, Operation, Port, Role
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Module

_SHOWN_EVENTS = 3  # events before the difference that a diagnostic quotes
_BASE_TILES = 2  # work tiles in which a field is changed: the last ones, which do the most


def interpret_role(module: Module, variant: Variant, role: Role) -> Diagnostic | None:
    """Return the first difference that a run of the role's code shows; PL0932 if inconclusive."""
    return _reported(variant, role, lambda: _interpret(module, variant, role))


def interpret_tiles(
    module: Module,
    variant: Variant,
    role: Role,
    sizes: dict[str, int],
    tiles: Sequence[tuple[int, CtaPosition]],
) -> Diagnostic | None:
    """Return the difference that some work tiles of a scheduler show: a replay."""

    def check() -> Diagnostic | None:
        difference = tiles_difference(module, variant, role, sizes, tiles)
        return None if difference is None else describe_difference(variant, role, difference)

    return _reported(variant, role, check)


def forbidden_instruction(module: Module, variant: Variant, role: Role) -> Diagnostic | None:
    """Return the error of a forbidden or unknown instruction, even one that never executes."""

    def check() -> Diagnostic | None:
        for function in reachable_functions(module, variant.symbol(role.name)):
            for statement in function_code(function).instructions:
                check_opcode(statement)
        return None

    return _reported(variant, role, check)


def _interpret(module: Module, variant: Variant, role: Role) -> Diagnostic | None:
    if not role.scheduler:
        return _compare(module, variant, role)
    difference = scheduler_difference(module, variant, role)
    return None if difference is None else describe_difference(variant, role, difference)


def _reported(
    variant: Variant, role: Role, audit: Callable[[], Diagnostic | None]
) -> Diagnostic | None:
    try:
        return audit()
    except RestrictionError as why:
        found = Difference(
            why.code, why.message, None, why.target or role.name, why.expected, why.found
        )
        diagnostic = describe_difference(variant, role, found)
        return replace(diagnostic, suggestions=why.suggestions) if why.suggestions else diagnostic
    except InconclusiveError as why:
        wanted = "operations that do not depend on data"
        unclear = Difference("PL0932", "is inconclusive", None, role.name, wanted, str(why))
        return describe_difference(variant, role, unclear)


def _compare(module: Module, variant: Variant, role: Role) -> Diagnostic | None:
    symbol = variant.symbol(role.name)
    compared = compared_values(module, symbol)
    done: set[tuple[str, str]] = set()
    raw = any(port.raw for port in variant.contract.ports if port.role == role.name)
    compare = compare_lanes if raw else _group_differences
    like: Interpreter | None = None
    everything: list[ExpectedTile] = []
    for case in input_cases(variant.contract, role, compared):
        run = RoleRun(module, variant, role, case)
        like = like or run.lane()
        expected = expected_tiles(case)
        everything += expected
        for found in compare(run, expected, done, like):
            return describe_difference(variant, role, found.difference, found)
    assert like is not None and everything  # never an empty set of runs
    moved = None if raw else coordinates_vary(module, variant, role, compared, like)
    if moved is not None:
        return describe_difference(variant, role, moved)
    found_missing = _missing_access(variant, role, done, everything)
    found_missing = found_missing or arrivals_difference(variant, role)
    if found_missing is None:
        check_functions(module, symbol, like.edges)
    return found_missing


def _group_differences(
    run: RoleRun, expected: list[ExpectedTile], done: set[tuple[str, str]], like: Interpreter
) -> Iterator[LocatedDifference]:
    """Yield differences of all threads of a role; warps that run alike are interpreted together.

    done: the performed accesses are added to it.
    """
    pending = [tuple(range(evaluate(run.role.warps, {})))]
    while pending:
        warps = pending.pop(0)
        machine = run.group(warps, like)
        try:
            yield from _tile_differences(run, machine, expected, warps[0], done)
        except WarpsDifferError as found:
            pending[:0] = [tuple(warps[number] for number in part) for part in found.parts]
        except (DivergedError, VariesError) as why:
            yield from _lane_differences(run, machine, expected, warps[0], why)


def _lane_differences(
    run: RoleRun,
    like: Interpreter,
    expected: list[ExpectedTile],
    warp: int,
    why: DivergedError | VariesError,
) -> Iterator[LocatedDifference]:
    """Yield the difference of the first lane of a warp that differs from its contract."""
    first = run.lane(32 * warp, like)
    for lane in range(32):
        machine = run.lane(32 * warp + lane, like, shuffles=first.shuffles) if lane else first
        for found in _tile_differences(run, machine, expected, warp, set()):
            if lane:
                found = replace(found, difference=_part_of_a_warp(found.difference, lane))
            yield found
            return
    if isinstance(why, VariesError):
        raise InconclusiveError("an operation whose operands differ between the lanes of a warp")
    yield LocatedDifference(diverged_difference(why, run.role.name), warp=warp)


def _missing_access(
    variant: Variant, role: Role, done: set[tuple[str, str]], expected_tiles: list[ExpectedTile]
) -> Diagnostic | None:
    for op in missing_accesses(done, expected_tiles, variant.contract):
        access = f"{op.verb} {op.target}"
        what, found = f"never performs `{access}`", "no such access by any warp"
        difference = Difference("PL0931", what, op, op.target, access, found)
        return describe_difference(variant, role, difference)
    return None


def _tile_differences(
    run: RoleRun,
    machine: Interpreter,
    expected: list[ExpectedTile],
    warp: int,
    done: set[tuple[str, str]],
) -> Iterator[LocatedDifference]:
    """Yield the first difference of a lane, tile by tile."""
    contract = run.variant.contract
    stages, slices = StageRotation(contract), ScratchSlices(contract, run.role)
    for fields, wanted in zip(run.case.tiles, expected, strict=False):
        log = run.tile(machine, fields)
        difference = first_difference(wanted, log) or next(
            access_differences(wanted, log, contract), None
        )
        if difference is None:
            environment = {**run.case.symbols, **fields}
            difference = stages.check(log) or slices.check(environment, machine.state.touched)
        if difference is not None:
            yield LocatedDifference(difference, fields, warp, log)
            return
        for found in log.accesses:
            done |= {item for access in found for item in access.performed}


def _part_of_a_warp(difference: Difference, lane: int) -> Difference:
    return replace(difference, message=f"diverges within a warp: lane {lane} {difference.message}")


def arrivals_difference(variant: Variant, role: Role) -> Diagnostic | None:
    """Return PL0933 unless a port declares one arrival per warp: the runtime elects one lane."""
    warps = evaluate(role.warps, {})
    for port in sorted(variant.contract.ports, key=lambda port: port.name):
        counts = port.space in RINGS or (port.space, port.direction) == ("counter", "out")
        if port.role != role.name or not counts or port.raw:
            continue
        declared = evaluate(port.arrivals, {})
        if declared != warps:
            unit = "signal" if port.space == "counter" else "item"
            what = f"performs {plural(warps, 'arrival')} per {unit} on `{port.name}` where its "
            what += f"contract declares {declared}"
            wanted, found = f"arrivals: {declared}", f"arrivals: {warps}, one by each warp"
            difference = Difference("PL0933", what, None, port.name, wanted, found)
            return describe_difference(variant, role, difference)
    return None


def describe_difference(
    variant: Variant, role: Role, difference: Difference, found: LocatedDifference | None = None
) -> Diagnostic:
    contract = variant.contract
    port = {item.name: item for item in contract.ports}.get(difference.target)
    span = difference.op.span if difference.op else None
    if span is None and port is not None and difference.code in _OF_A_PORT:
        span = port.where("arrivals") if difference.code == "PL0933" else port.span
    if difference.code == "PL0937":
        declared = contract.work.fields if contract.work else ()
        span = next((one.span for one in declared if one.name == difference.target), None)
    span = span or role.where("body") or contract.span
    executed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    if found is not None and found.log is not None:
        start = max(0, difference.position - _SHOWN_EVENTS)
        executed = tuple(map(str, found.log.events[start : difference.position + 1]))
        fields = ", ".join(f"{name}={value}" for name, value in found.fields.items())
        notes = (f"interpreted as warp {found.warp} with {fields or 'an empty work tile'}",)
    audit = "audit of " if difference.code == "PL0932" else ""
    return Diagnostic(
        difference.code,
        f"{audit}role `{role.name}` of `{contract.component}` {difference.message}",
        (Label(span, _label(role, difference, port)),) if span else (),
        expected=difference.expected,
        found=difference.found,
        notes=notes,
        chain=executed,
        suggestions=_HELP.get(
            difference.code, ("perform the operations of `body` in its order, or correct `body`",)
        ),
        subject=f"{contract.component}.{role.name}",
    )


def _label(role: Role, difference: Difference, port: Port | None) -> str:
    if difference.op is not None:
        return "declared here"
    return "this port" if port and difference.code in _OF_A_PORT else f"role `{role.name}`"


_OF_A_PORT = ("PL0933", "PL0935", "PL0936")  # shown at the port, not at the body
_HELP = {
    "PL0807": (
        "list every field that the coordinates depend on in `along`",
        "or remove `along`: every CTA of a cluster then copies its own tile",
    ),
    "PL0919": ("call pipelink::wgmma_fence() before the first wgmma after a wait",),
    "PL0932": (
        "branch around operations on the work tile and the thread only",
        "or use the runtime's operations or the common forms of barrier and copy instructions",
    ),
    "PL0933": (
        "set `arrivals` to the warps of the role, which arrive once per item; on a raw port, to "
        "the arrivals of all its threads",
    ),
    "PL0935": (
        "call the runtime (<pipelink/runtime.cuh>), or declare `raw: true` on the port",
        "or, for a named barrier of a role without raw ports, call pl_barrier_sync",
    ),
    "PL0936": (
        "remove it: the linker orders CTAs, through counters",
        "or combine the values of a CTA's threads in a buffer of shared memory",
    ),
    "PL0939": (
        "use the loops, cursors and addresses of the shipped components, or build without strict=1",
    ),
    "PL0937": ("correct the code or the fields of the contract: other components rely on them",),
}


# -- coordinates of copies
def coordinates_vary(
    module: Module, variant: Variant, role: Role, compared: Sequence[int], like: Interpreter
) -> Difference | None:
    """Return the first copy whose coordinates change with a field that `along` does not list.

    CTAs of a cluster that need the same tile copy one slice each for all of them, and fields that
    `along` does not list may differ between these CTAs.  So the role is interpreted twice, with
    one such field changed, and the coordinates of its copies are compared.
    """
    contract = variant.contract
    ports = [
        port
        for port in contract.ports
        if port.role == role.name and port.tile is not None and port.tile.along is not None
    ]
    # Fields that decide a loop count are equal in all CTAs that share data (PL0804).
    fields = [
        field
        for field in (contract.work.fields if contract.work else ())
        if field.name not in loop_fields(role.body)
    ]
    if not any(field.name not in _along(port) for port in ports for field in fields):
        return None
    run = RoleRun(module, variant, role, input_case(contract, role, compared=compared))
    for base in run.case.tiles[-_BASE_TILES:]:
        before = run.tile(run.lane(0, like), base).copies
        for port in ports:
            if any(None in copied[1:] for copied in before if copied.source == port.name):
                return _coordinate_error(port, "coordinates that depend on data", base)
        for field in fields:
            for value in field_values(field, compared):
                after = run.tile(run.lane(0, like), {**base, field.name: value}).copies
                for port in ports:
                    if field.name in _along(port):
                        continue
                    moved = next(_moved(before, after, port.name), None)
                    if moved is not None:
                        one, two = moved
                        before_text = f"{one} with {field.name}={base[field.name]}"
                        return _coordinate_error(
                            port, f"{before_text}, {two} with {field.name}={value}", base
                        )
    return None


def _along(port: Port) -> tuple[str, ...]:
    return (port.tile.along if port.tile else None) or ()


def _moved(
    before: list[Copied], after: list[Copied], source: str
) -> Iterator[tuple[tuple[object, object], tuple[object, object]]]:
    """Yield the coordinates before and after of each copy of a tensor that moved."""
    mine = [[c for c in copies if c.source == source] for copies in (before, after)]
    for one, two in zip(*mine, strict=False):
        if one != two:
            yield (one.x, one.y), (two.x, two.y)


def _coordinate_error(port: Port, found: str, tile: dict[str, int]) -> Difference:
    along = ", ".join(_along(port)) or "no field"
    span = port.tile.span if port.tile else port.span
    op = Operation("copy", port.name, source=port.name, span=span)
    numbers = ", ".join(f"{name}={value}" for name, value in tile.items())
    return Difference(
        "PL0807",
        f"copies `{port.name}` at coordinates that depend on fields beyond `along`",
        op,
        port.name,
        f"coordinates that change along {along} only",
        f"{found} (in a work tile of {numbers})",
    )
