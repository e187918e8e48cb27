"""A program's needs become a placement problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipelink_rules.contract.load import parse_contract
from pipelink_rules.model.contract import NamedBarrier
from pipelink_rules.model.placement import BarrierRequest, RoleRequest, SharedAllocation
from pipelink_rules.model.program import Program
from pipelink_rules.model.source_span import Expr, Span
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.resolve import resolve
from pipelink_rules.program.spec import parse_declaration


def linear(repository: Path, **clauses: object) -> Program:
    """tiles, load -> mma -> bias => store, with a buffer in `store`."""
    contracts = {}
    for path in (repository / "tests/golden_stages/declare_components").glob("*.contract.yaml"):
        text = path.read_text()
        if path.name == "store.contract.yaml":
            text = text.replace("write C]", "write staging, write C]")
            text += "buffers: {staging: {role: store, bytes: TM * 64 * sizeof(T), align: 1024}}\n"
        contract = parse_contract(text, path.name)
        contracts[f"//parts:{contract.component}"] = contract
    spec = parse_declaration(
        name="linear",
        instances={
            "tiles": ("//parts:tiles", {}),
            "load": ("//parts:load", {"TM": 128, "TN": 128}),
            "mma": ("//parts:mma", {}),
            "bias": ("//parts:bias", {}),
            "store": ("//parts:store", {}),
        },
        connect={"mma.ab": "load.ab", "bias.acc": "mma.acc", "store.acc": "bias.out"},
        tensors={"a": "load.A", "b": "load.B", "bias": "bias.vector", "out": "store.C"},
        scalars={"scale": "bias.scale"},
        span=Span("SConscript", 1, 1),
        **clauses,  # type: ignore[arg-type]
    )
    return resolve(spec, bind_instances(spec, contracts), "sm_90a")


def test_channels_and_buffers_are_items(repository: Path) -> None:
    problem = placement_problem(linear(repository, transfers={"bias.acc": "handover"}, occupancy=2))
    assert (problem.name, problem.target, problem.occupancy) == ("linear", "sm_90a", 2)
    assert problem.lifetimes == ("work",)
    numbers = [replace(item, span=None) for item in problem.items]
    assert numbers == [
        SharedAllocation("load.ab", 2 * 128 * 64 * 2, 1024, 1, "load.ab"),
        SharedAllocation("mma.acc>bias.acc", 2 * 64 * 128 * 4, 16, 1, "mma.acc>bias.acc"),
        SharedAllocation("store.staging", 128 * 64 * 2, 1024, 1),
    ]
    assert all(item.span for item in problem.items)


def test_copied_rings_get_their_stages_first(repository: Path) -> None:
    problem = placement_problem(linear(repository, transfers={"bias.acc": "handover"}))
    assert [(item.name, item.minimum, item.maximum, item.priority) for item in problem.stages] == [
        ("load.ab", 2, 8, 0),
        ("mma.acc>bias.acc", 1, 2, 2),
    ]
    assert problem.mbarriers_per_stage == (("load.ab", 2), ("mma.acc>bias.acc", 4))


def test_roles_carry_their_needs(repository: Path) -> None:
    problem = placement_problem(linear(repository))
    assert [replace(role, span=None) for role in problem.roles] == [
        RoleRequest("load", 1, False, 40, 40, 24),
        RoleRequest("mma+bias+store", 8, True, 96, 240, 90),
    ]


def test_named_barriers_are_needs(repository: Path) -> None:
    program = linear(repository)
    barrier = NamedBarrier("half", ("store",), Expr("256"))
    instances = tuple(
        replace(
            item,
            variant=replace(
                item.variant,
                contract=replace(item.variant.contract, named_barriers=(barrier,)),
            ),
        )
        if item.name == "store"
        else item
        for item in program.instances
    )
    problem = placement_problem(replace(program, instances=instances))
    assert problem.barriers == (BarrierRequest("store.half", 1),)
