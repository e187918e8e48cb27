"""Who computes the work item, and does every other component understand it?"""

from __future__ import annotations

from collections.abc import Mapping

from pipelink_rules.diagnostics.suggest import similar_name_help
from pipelink_rules.model.contract import Contract, Work
from pipelink_rules.model.program import MegakernelSpec
from pipelink_rules.program.findings import Findings
from pipelink_rules.program.link_constants import is_constant


def find_scheduler(
    spec: MegakernelSpec, contracts: Mapping[str, Contract], findings: Findings
) -> tuple[str, str] | None:
    """(instance, role) that computes the work item; PL0065 unless there is exactly one."""
    found = [
        (instance, role)
        for instance in sorted(contracts)
        for role in contracts[instance].roles
        if role.schedule
    ]
    if len(found) == 1:
        return found[0][0], found[0][1].name
    if not found:
        if len(contracts) < len(spec.instances):  # an unknown label may have been the schedule
            return None
        kinds = sorted({item.work.kind for item in contracts.values() if item.work})
        findings.add(
            "PL0065",
            f"`{spec.name}` has no schedule",
            spec.where("instances"),
            expected="one component with a `schedule: true` role",
            found="none",
            helps=tuple(f"add an instance that deals `{kind}` items" for kind in kinds[:1]),
            subject=spec.name,
        )
        return None
    findings.add(
        "PL0065",
        f"`{spec.name}` has {len(found)} schedules",
        *((spec.where("instances", name), f"`{name}` is a schedule") for name, _ in found),
        expected="one component with a `schedule: true` role",
        found=", ".join(name for name, _ in found),
        helps=("keep one of them",),
        subject=spec.name,
    )
    return None


def check_work(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    schedule: tuple[str, str] | None,
    findings: Findings,
) -> None:
    """Every work item that is taken is of the kind and has the fields that the schedule gives."""
    if schedule is None:
        return
    given = contracts[schedule[0]].work
    if given is None:
        return
    for instance in sorted(contracts):
        taken = contracts[instance].work
        if instance == schedule[0] or taken is None:
            continue
        if taken.kind != given.kind:
            findings.add(
                "PL0066",
                f"`{instance}` takes `{taken.kind}` items, `{schedule[0]}` deals `{given.kind}`",
                spec.where("instances", instance),
                (taken.span, f"`{instance}` takes `{taken.kind}`"),
                (given.span, f"`{schedule[0]}` deals `{given.kind}`"),
                expected=given.kind,
                found=taken.kind,
                helps=(f"take a component for `{given.kind}`, or a schedule of `{taken.kind}`",),
                subject=instance,
            )
        else:
            _check_fields(spec, (instance, taken), (schedule[0], given), findings)


def _check_fields(
    spec: MegakernelSpec, taken: tuple[str, Work], given: tuple[str, Work], findings: Findings
) -> None:
    offered = [field.name for field in given[1].fields]
    for field in taken[1].fields:
        if field.name not in offered:
            findings.add(
                "PL0067",
                f"`{given[0]}` does not give the work field `{field.name}` of `{taken[0]}`",
                spec.where("instances", taken[0]),
                (field.span, "needed here"),
                (given[1].span, f"fields of `{given[0]}`: {', '.join(offered) or 'none'}"),
                helps=similar_name_help(field.name, offered),
                subject=f"{taken[0]}.{field.name}",
            )


def check_tiles(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    schedule: tuple[str, str] | None,
    findings: Findings,
) -> None:
    """Bound tiles of one work kind are equal (PL0068)."""
    given = contracts[schedule[0]].work if schedule else None
    if schedule is None or given is None:
        return
    wanted = [is_constant(extent) for extent in given.tile]
    others: dict[str, list[str]] = {}
    for instance in sorted(contracts):
        taken = contracts[instance].work
        if instance != schedule[0] and taken is not None and taken.kind == given.kind:
            extents = [is_constant(extent) for extent in taken.tile]
            if extents != wanted:
                others.setdefault(_tile(extents), []).append(instance)
    for tile, instances in others.items():
        names = ", ".join(f"`{name}`" for name in instances)
        places = [(contracts[name].work, f"`{name}` takes {tile}") for name in instances]
        findings.add(
            "PL0068",
            f"`{schedule[0]}` deals tiles of {_tile(wanted)}, but {tile} is the tile of {names}",
            spec.where("instances", schedule[0]),
            (given.span, f"`{schedule[0]}` deals {_tile(wanted)}"),
            *((work.span if work else None, text) for work, text in places),
            expected=_tile(wanted),
            found=tile,
            at_run_time="parts of the result would be computed twice or not at all",
            helps=("give all of them the same tile: where it is left out, it follows",),
            subject=tile,
        )


def check_cluster(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    schedule: tuple[str, str] | None,
    findings: Findings,
) -> None:
    """The schedule deals items to clusters of the declared shape (PL0806)."""
    work = contracts[schedule[0]].work if schedule else None
    if schedule is None or work is None:
        return
    served = [is_constant(extent) for extent in work.cluster] or [1, 1]
    wanted = list(spec.cluster)
    if [*served, 1] == wanted:
        return
    found = _tile([*served, 1])
    serves = f"items for clusters of {found}" if work.cluster else "every CTA an item of its own"
    place = next((extent.span for extent in work.cluster), work.span)
    findings.add(
        "PL0806",
        f"`{schedule[0]}` deals {serves}, but clusters of {_tile([*wanted])} are declared",
        (spec.where("cluster"), "declared here"),
        (spec.where("instances", schedule[0]), f"`{schedule[0]}` is the schedule"),
        (place, f"serves {found}"),
        expected=f"a schedule that serves {_tile([*wanted])}",
        found=found,
        at_run_time="CTAs of a cluster would work on tiles that do not belong together",
        helps=(f"declare `cluster={(*served, 1)}`", "or take a schedule for this cluster")
        if None not in served
        else ("take a schedule for this cluster",),
        subject=spec.name,
    )


def _tile(extents: list[int | None]) -> str:
    return " x ".join("?" if extent is None else str(extent) for extent in extents) or "no"
