"""Whatever help proposes, applied, is accepted: by the placement and by its verifier."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.model.placement import (
    BarrierRequest,
    PlacementProblem,
    RoleRequest,
    SharedAllocation,
    StageVariable,
    TensorMemoryRequest,
)
from pipelink_rules.place.advice import REMAIN
from pipelink_rules.place.place import place
from pipelink_rules.place.rectangles import round_up
from pipelink_rules.place.verify import verify

# What names no change that could be applied.
GENERAL = (
    "use ",
    "no single change fits: ",
    "run roles on at least ",
    "raise the budget",
    "let a ",
)
Apply = Callable[[PlacementProblem, re.Match[str], Diagnostic], PlacementProblem]


def _lower(problem: PlacementProblem, found: re.Match[str], _: Diagnostic) -> PlacementProblem:
    stages = tuple(
        replace(s, minimum=int(found[2])) if s.name == found[1] else s for s in problem.stages
    )
    return replace(problem, stages=stages)


def _roles(problem: PlacementProblem, name: str, **changes: int) -> PlacementProblem:
    roles = tuple(replace(r, **changes) if r.name == name else r for r in problem.roles)
    return replace(problem, roles=roles)


def _sizes(problem: PlacementProblem, sizes: dict[str, int]) -> PlacementProblem:
    items = tuple(replace(i, bytes=sizes.get(i.name, i.bytes)) for i in problem.items)
    return replace(problem, items=items)


def _round(problem: PlacementProblem, found: re.Match[str], _: Diagnostic) -> PlacementProblem:
    return _sizes(problem, {i.name: round_up(i.bytes, i.align) for i in problem.items})


def _named(problem: PlacementProblem, found: re.Match[str], said: Diagnostic) -> PlacementProblem:
    names = said.found.split(": ")[1].split(", ")
    kept = tuple(b for b in problem.barriers if b.name not in names[-int(found[1]) :])
    more = problem.mbarriers_fixed + int(found[1])
    return replace(problem, barriers=kept, mbarriers_fixed=more)


APPLIED: list[tuple[str, Apply]] = [
    (r"lower the minimum of `(.+)` from \d+ to (\d+) stages?", _lower),
    (
        r"place (\d+) CTAs? per SM instead of \d+",
        lambda problem, found, _: replace(problem, occupancy=int(found[1])),
    ),
    (
        r"run `(.+)` on (\d+) warps? instead of \d+, if its contract divides the work so",
        lambda problem, found, _: _roles(problem, found[1], warps=int(found[2])),
    ),
    (
        r"reduce the registers of `(.+)` from \d+ to (\d+) with a smaller tile or fragment",
        lambda problem, found, _: _roles(
            problem, found[1], minimum=int(found[2]), want=int(found[2])
        ),
    ),
    (
        r"shrink `(.+)` by [\d,]+ to ([\d,]+) bytes, if its component needs no more",
        lambda problem, found, _: _sizes(problem, {found[1]: int(found[2].replace(",", ""))}),
    ),
    (r"round these sizes up to their alignment: .*", _round),
    (r"replace (\d+) named barriers? by mbarriers, whose number only shared memory limits", _named),
]


def applied(problem: PlacementProblem, text: str, said: Diagnostic) -> PlacementProblem:
    """Make the change that a help text describes."""
    for part in text.removesuffix(REMAIN).split(" and "):
        found, apply = next(
            (match, apply) for pattern, apply in APPLIED if (match := re.fullmatch(pattern, part))
        )
        problem = apply(problem, found, said)
    return problem


def codes(problem: PlacementProblem) -> set[str]:
    try:
        placement = place(problem)
    except PipelinkError as refused:
        return {finding.code for finding in refused.diagnostics}
    assert verify(problem, placement) == []
    return set()


def check_helps(problem: PlacementProblem) -> list[str]:
    """Apply every help of the errors of a problem, and return the texts."""
    try:
        place(problem)
    except PipelinkError as refused:
        said = refused.diagnostics
    else:
        return []
    texts = []
    for finding in said:
        assert finding.suggestions, finding.message
        for text in finding.suggestions:
            texts.append(text)
            if text.startswith(GENERAL):
                continue
            left = codes(applied(problem, text, finding))
            if text.endswith(REMAIN):
                assert left, text
                assert finding.code not in left or finding.code == "PL0704", text
            else:
                assert not left, (text, left)
    return texts


@st.composite
def tight_problems(draw: st.DrawFn) -> PlacementProblem:
    """Return problems near the limits of an SM, most of them beyond one."""
    target = draw(st.sampled_from(("sm_90a", "sm_90a", "sm_100a", "sm_80")))
    phases = draw(st.sampled_from((1, 1, 1, 2)))
    mask = st.integers(1, (1 << phases) - 1)
    rings = draw(st.integers(0, 3))
    items, stages = [], []
    for n in range(rings):
        minimum = draw(st.integers(1, 4))
        stages.append(StageVariable(f"r{n}", minimum, minimum + draw(st.integers(0, 2))))
        size = draw(st.integers(4_000, 60_000))
        align = draw(st.sampled_from((16, 128, 1024)))
        items.append(SharedAllocation(f"r{n}", size, align, draw(mask), f"r{n}"))
    for n in range(draw(st.integers(0, 3))):
        size = draw(st.integers(100, 120_000))
        align = draw(st.sampled_from((16, 128, 1024)))
        items.append(SharedAllocation(f"b{n}", size, align, draw(mask)))
    roles = [
        RoleRequest(
            f"role{n}",
            draw(st.sampled_from((4, 8, 12))) if whole else draw(st.integers(1, 20)),
            whole,
            draw(st.sampled_from((24, 40, 90, 168, 248))),
            240,
            draw(st.sampled_from((0, 0, 90, 154))),
        )
        for n, whole in enumerate(draw(st.lists(st.booleans(), min_size=1, max_size=3)))
    ]
    tensor = [
        TensorMemoryRequest(f"r{n}", draw(st.sampled_from((64, 128, 256))), draw(mask), f"r{n}")
        for n in range(rings if target == "sm_100a" and draw(st.booleans()) else 0)
    ]
    return PlacementProblem(
        name="tight",
        target=target,
        occupancy=draw(st.integers(1, 3)),
        lifetimes=("early", "late")[:phases],
        items=tuple(items),
        stages=tuple(stages),
        roles=tuple(roles),
        barriers=tuple(
            BarrierRequest(f"n{n:02}", draw(mask)) for n in range(draw(st.integers(0, 18)))
        ),
        mbarriers_per_stage=tuple((stage.name, 2) for stage in stages),
        tensor=tuple(tensor),
    )


@settings(max_examples=40)
@given(tight_problems())
def test_every_help_is_accepted(problem: PlacementProblem) -> None:
    check_helps(problem)


def only(**parts: object) -> PlacementProblem:
    empty = PlacementProblem(
        name="k",
        target="sm_90a",
        occupancy=1,
        lifetimes=("work",),
        items=(),
        stages=(),
        roles=(RoleRequest("one", 1, False, 24, 24, 0),),
        barriers=(),
        mbarriers_per_stage=(),
    )
    return replace(empty, **parts)  # type: ignore[arg-type]


def test_one_loose_warp_too_many() -> None:
    loose = tuple(RoleRequest(f"r{n}", 11, False, 24, 24, 0) for n in range(3))
    texts = check_helps(only(roles=loose))
    assert texts[0] == "run `r0` on 10 warps instead of 11, if its contract divides the work so"
    single = tuple(RoleRequest(f"r{n:02}", 1, False, 24, 24, 0) for n in range(33))
    assert "run roles on at least 1 warp less" in check_helps(only(roles=single))


@pytest.mark.parametrize(
    ("sizes", "texts"),
    [
        # Rounding up would need 1,024 bytes more.
        (
            (116_000, 116_000),
            ("shrink `a` by 288 to 115,712 bytes, if its component needs no more",),
        ),
        (
            (100_000, 132_464),
            ("shrink `b` by 368 to 132,096 bytes, if its component needs no more",),
        ),
        ((232_464,), ("shrink `a` by 16 to 232,448 bytes, if its component needs no more",)),
    ],
)
def test_sizes_are_not_rounded_up_beyond_the_limit(
    sizes: tuple[int, ...], texts: tuple[str, ...]
) -> None:
    items = tuple(SharedAllocation("ab"[n], size, 1024, 1) for n, size in enumerate(sizes))
    assert set(texts) <= set(check_helps(only(items=items)))
