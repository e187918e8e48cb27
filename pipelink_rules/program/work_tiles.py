"""The tile scheduler, and checks that its work tiles fit every other component."""

from collections.abc import Mapping

from pipelink_rules.diagnostics.diagnostic import DiagnosticSink, Location
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.model.contract import Contract, Work
from pipelink_rules.model.program import MegakernelSpec


def find_scheduler(
    spec: MegakernelSpec, contracts: Mapping[str, Contract], findings: DiagnosticSink
) -> tuple[str, str] | None:
    """Return (instance, role) of the tile scheduler; report PL0065 unless there is exactly one."""
    found = [
        (instance, role)
        for instance in sorted(contracts)
        for role in contracts[instance].roles
        if role.scheduler
    ]
    if len(found) == 1:
        return found[0][0], found[0][1].name
    if not found and len(contracts) < len(spec.instances):
        return None  # an unknown label may be the scheduler
    kinds = sorted({item.work.kind for item in contracts.values() if item.work})
    add = (f"add an instance of a tile scheduler for work kind `{kind}`" for kind in kinds[:1])
    places: list[Location] = [
        (spec.where("instances", name), f"`{name}` is a tile scheduler") for name, _ in found
    ]
    findings.add(
        "PL0065",
        f"`{spec.name}` has {f'{len(found)} tile schedulers' if found else 'no tile scheduler'}",
        *(places or [spec.where("instances")]),
        expected="one component with a `scheduler: true` role",
        found=", ".join(name for name, _ in found) or "none",
        suggestions=("remove all of them but one",) if found else tuple(add),
        subject=spec.name,
    )
    return None


def check_work(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    scheduler: tuple[str, str] | None,
    findings: DiagnosticSink,
) -> None:
    """Check that work kind and fields of every component are those of the tile scheduler."""
    given = contracts[scheduler[0]].work if scheduler else None
    if scheduler is None or given is None:
        return
    for instance in sorted(contracts):
        taken = contracts[instance].work
        if instance == scheduler[0] or taken is None:
            continue
        if taken.kind != given.kind:
            findings.add(
                "PL0066",
                f"`{instance}` processes `{taken.kind}` tiles, but `{scheduler[0]}` assigns "
                f"`{given.kind}`",
                spec.where("instances", instance),
                (taken.span, f"`{instance}` processes `{taken.kind}`"),
                (given.span, f"`{scheduler[0]}` assigns `{given.kind}`"),
                expected=given.kind,
                found=taken.kind,
                suggestions=(
                    f"use a component for `{given.kind}`",
                    f"or a tile scheduler for `{taken.kind}`",
                ),
                subject=instance,
            )
        else:
            _check_fields(spec, (instance, taken), (scheduler[0], given), findings)


def _check_fields(
    spec: MegakernelSpec, taken: tuple[str, Work], given: tuple[str, Work], findings: DiagnosticSink
) -> None:
    offered = [field.name for field in given[1].fields]
    for field in taken[1].fields:
        if field.name not in offered and field.default is None:
            findings.add(
                "PL0067",
                f"`{given[0]}` does not assign the work field `{field.name}` that `{taken[0]}` "
                f"reads",
                spec.where("instances", taken[0]),
                (field.span, "read here"),
                (given[1].span, f"fields of `{given[0]}`: {', '.join(offered) or 'none'}"),
                suggestions=similar_name_help(field.name, offered),
                subject=f"{taken[0]}.{field.name}",
            )
