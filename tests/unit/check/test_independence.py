"""The verdict and its cost depend on clauses: not on stages, trip counts or threads of a launch."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest
from mutations import mutated
from programs import program

from pipelink_rules.check.protocol import analyze as problem_search
from pipelink_rules.check.protocol.analyze import analyze_case, find_problems
from pipelink_rules.check.protocol.cases import UndecidedCounts, stage_choices
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.model import Composition
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.model.program import Program
from pipelink_rules.model.source_span import Expr


def kinds(protocol: ProtocolIndex, stages: dict[str, int] | None = None) -> set[str]:
    return {type(found.problem).__name__ for found in find_problems(protocol, stages)}


def test_analyzed_stage_counts_represent_all() -> None:
    """Broken programs are refused for the same reasons as if every stage count were analyzed."""
    seen: Counter[bool] = Counter()
    for seed in range(14):
        rng = random.Random(f"stages {seed}")
        protocol = ProtocolIndex(mutated(rng, program(rng.choice(("gemm", "stream")))))
        channels = protocol.program.channels
        every = itertools.product(*(range(c.minimum, c.maximum + 1) for c in channels))
        found = kinds(protocol)
        for counts in every:
            stages = {c.name: count for c, count in zip(channels, counts, strict=True)}
            assert kinds(protocol, stages) <= found, (seed, stages)
        seen[bool(found)] += 1
    assert min(seen[True], seen[False]) > 2


def analyzed_sizes(made: Program, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of actions of all compositions that the check looks at."""
    sizes: list[int] = []
    real = problem_search.analyze_case

    def analyze(composition: Composition) -> object:
        sizes.append(sum(len(process.period) for process in composition.processes))
        return real(composition)

    with monkeypatch.context() as patch:
        patch.setattr(problem_search, "analyze_case", analyze)
        assert not find_problems(ProtocolIndex(made))
    return sizes


def with_most_trips(made: Program, most: int) -> Program:
    """The program with a maximum for every field of its work tiles."""
    instances = []
    for item in made.instances:
        contract = item.variant.contract
        if contract.work is not None:
            fields = tuple(
                replace(field, maximum=Expr(str(most))) for field in contract.work.fields
            )
            work = replace(contract.work, fields=fields)
            variant = replace(item.variant, contract=replace(contract, work=work))
            item = replace(item, variant=variant)
        instances.append(item)
    return replace(made, instances=tuple(instances))


def test_trip_counts_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = program("gemm")
    sizes = analyzed_sizes(with_most_trips(made, 1_000), monkeypatch)
    assert sizes == analyzed_sizes(with_most_trips(made, 100_000_000), monkeypatch)
    assert sizes == analyzed_sizes(made, monkeypatch)
    assert sum(sizes) < 3_000


def test_threads_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same mainloop for a tile of one warpgroup and of four: as many actions to analyze."""
    sizes = []
    for rows in (64, 256):
        made = program("gemm", SConscript=[['"TM": 128', f'"TM": {rows}']])
        sizes.append((max(role.warps for role in made.roles), analyzed_sizes(made, monkeypatch)))
    (few, one), (many, four) = sizes
    assert many == 4 * few and one == four


WHOLE = (
    "      - repeat: k_blocks\n        body:\n          - wait ab\n          - mma ab\n"
    "          - await mma 1\n          - release ab lag 1\n"
)


def in_parts(*counts: str) -> Program:
    """The GEMM whose mainloop is divided into loops."""
    return program("gemm", mma=[[WHOLE, "".join(WHOLE.replace("k_blocks", c) for c in counts)]])


def exhaustive(protocol: ProtocolIndex, most: int) -> set[str]:
    """What every two successive work tiles with up to `most` k-blocks show."""
    stages = stage_choices(protocol.program)[0]
    found = set()
    for pair in itertools.product(range(most + 1), repeat=2):
        work = [{"k_blocks": trips} for trips in dict.fromkeys(pair)]
        composition, problems = compose(protocol, stages, work)
        found |= {type(item).__name__ for item in problems or analyze_case(composition)}
    return found


@pytest.mark.parametrize(
    "counts",
    [
        ("k_blocks",),
        ("min(k_blocks, 5)", "max(k_blocks - 5, 0)"),
        ("k_blocks // 3", "k_blocks - k_blocks // 3"),
        ("k_blocks * (k_blocks > 6)", "k_blocks * (k_blocks <= 6)"),
        ("k_blocks % 4", "k_blocks // 4 * 4"),
    ],
)
def test_analyzed_work_tiles_represent_all(counts: tuple[str, ...]) -> None:
    """Broken programs are refused for the same reasons as if all trip counts were analyzed."""
    made = in_parts(*counts)
    seen: Counter[bool] = Counter()
    for seed in range(9):
        protocol = ProtocolIndex(mutated(random.Random(f"trips {counts} {seed}"), made))
        found = kinds(protocol)
        assert exhaustive(protocol, 12) <= found, (counts, seed)
        seen[bool(found)] += 1
    assert seen[True] > 2


@pytest.mark.parametrize("most", [3, 20, 177])
def test_only_a_loop_behind_a_threshold_is_wrong(most: int) -> None:
    """Released while wgmma reads: in k-blocks that no trip count around the stages reaches."""
    right = in_parts(f"min(k_blocks, {most})", f"max(k_blocks - {most}, 0)")
    assert not find_problems(ProtocolIndex(right))
    late = WHOLE.replace("k_blocks", f"max(k_blocks - {most}, 0)")
    late = late.replace(
        "await mma 1\n          - release ab lag 1", "release ab lag 1\n          - await mma 1"
    )
    early = WHOLE.replace("k_blocks", f"min(k_blocks, {most})")
    wrong = program("gemm", mma=[[WHOLE, early + late]])
    assert "MmaStillReads" in kinds(ProtocolIndex(wrong))


def test_counts_whose_combinations_are_unknown_are_an_error() -> None:
    m, n, k = ("*".join([f"({name} + 1)"] * 3) for name in ("m", "n", "k_blocks"))
    count = ["- repeat: k_blocks", f"- repeat: k_blocks * ({m} + {n} != {k})"]  # Fermat's theorem
    made = program(
        "gemm", mma=[count, ["fields: {k_blocks: {}}", "fields: {k_blocks: {}, m: {}, n: {}}"]]
    )
    with pytest.raises(UndecidedCounts):
        kinds(ProtocolIndex(made))
