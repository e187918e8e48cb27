"""Registers are moved before anything that can wait, so that a take never waits for a role.

setmaxnreg.inc blocks until the pool of the CTA has enough registers (PTX ISA, setmaxnreg).  What is
read here is the generated text of every megakernel: after the barrier of the entry each warpgroup
comes to its give or take first, and with all gives done every take goes through, in any order.
"""

from __future__ import annotations

import itertools
import re

import pytest
from shipped_declarations import pairs, placement_of, program_of

from pipelink_rules.glue.emit import emit_glue

ENTRY = re.compile(r"\n  (?:__syncthreads|pipelink::cluster_sync)\(\);\n")
BRANCH = re.compile(r"  (?:\} else )?if \((warp [^{]*)\) \{")
MOVE = re.compile(r"    pipelink::(give|take)_registers<(\d+)>\(\);")
HARMLESS = re.compile(r"\s*(//.*)?|  const uint32_t items = [^;]*;|    // keeps the .*")


def moves_of(text: str, groups: int) -> dict[int, tuple[str, int]]:
    """Warpgroup -> its move; ValueError where something comes before it or warpgroups differ."""
    _, after = ENTRY.split(text, maxsplit=1)
    found: dict[int, tuple[str, int]] = {}
    mine: list[int] = []
    for line in after.splitlines():
        if branch := BRANCH.fullmatch(line):
            mine = [g for g in range(groups) if _within(branch[1], g)]
        elif (move := MOVE.match(line)) and mine:
            found.update(dict.fromkeys(mine, (move[1], int(move[2]))))
            mine = []
        elif mine and line.startswith("    // keeps the"):
            mine = []
        elif "_registers<" in line:
            raise ValueError(f"moves registers too late: {line.strip()}")
        elif (mine or not found) and not HARMLESS.fullmatch(line):
            raise ValueError(f"before registers are moved: {line.strip()}")
    return found


def _within(condition: str, group: int) -> bool:
    inside = {eval(condition.replace("&&", "and"), {"warp": 4 * group + w}) for w in range(4)}
    if len(inside) > 1:
        raise ValueError(f"a part of a warpgroup: {condition}")
    return inside == {True}


def always_goes_through(moves: dict[int, tuple[str, int]], entry: int, groups: int) -> bool:
    """Every order in which warpgroups come to their moves lets all of them go on."""
    for order in itertools.permutations(moves):
        free, waiting = 0, list(order)
        while waiting:
            for group in waiting:
                kind, registers = moves[group]
                if kind == "give" or registers - entry <= free:
                    free += entry - registers
                    waiting.remove(group)
                    break
            else:
                return False
    return True


KERNELS = pairs()


@pytest.mark.parametrize(("name", "arch"), KERNELS)
def test_registers_are_moved_first(name: str, arch: str) -> None:
    placement = placement_of(name, arch)
    text = emit_glue(program_of(name, arch), placement)
    groups = placement.threads // 128
    if not placement.setmaxnreg:
        assert "_registers<" not in text
        return
    moves = moves_of(text, groups)
    assert moves and set(moves) <= set(range(groups))
    kept = [g.index for g in placement.warpgroups if g.index not in moves]
    assert all(placement.warpgroups[g].registers == placement.entry_registers for g in kept)
    assert always_goes_through(moves, placement.entry_registers, groups)


def test_what_comes_too_early_is_seen() -> None:
    name, arch = next(pair for pair in KERNELS if placement_of(*pair).setmaxnreg)
    placement = placement_of(name, arch)
    text = emit_glue(program_of(name, arch), placement)
    groups = placement.threads // 128
    for line in ("pl_ring_wait(ring, cursor);", "pipelink::sync(barrier);", "for (;;) {"):
        early = re.sub(r"(\n    pipelink::take)", rf"\n    {line}\1", text, count=1)
        with pytest.raises(ValueError, match=r"before registers|too late"):
            moves_of(early, groups)
        entry = ENTRY.sub(lambda found, line=line: f"{found[0]}  {line}\n", text, count=1)
        with pytest.raises(ValueError, match="before registers"):
            moves_of(entry, groups)


def test_more_takes_than_gives_are_seen() -> None:
    assert always_goes_through({0: ("give", 24), 1: ("take", 240)}, 168, 2)
    assert not always_goes_through({0: ("give", 40), 1: ("take", 232), 2: ("take", 240)}, 168, 3)
