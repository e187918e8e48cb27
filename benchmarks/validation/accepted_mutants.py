"""Run mutants that the check accepts on a GPU: thirty of them, drawn by seed.

    python -m benchmarks.validation.accepted_mutants --link [--missing]   # no GPU
    python -m benchmarks.validation.accepted_mutants [--out FILE]

Draws from the list that `benchmarks.validation.mutation` writes: accepted mutants that result in
another kernel of the same sources.  The first command links each in a copy of the repository, with
the runtime `jitter`, to build/proof/trials.  The second launches them and compares the results with
float64 and, bit by bit, with the unchanged megakernel.  A mutant whose link is refused because it
spills is listed, and another one is drawn.  Writes the section `trials` of
benchmarks/results/validation/h200.json after every mutant.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.validation.result_files import (
    BUILD,
    PLAN,
    PROOF,
    RESULTS,
    keep,
    manifests,
    open_section,
    put,
    read,
)

TRIALS = PROOF / "trials"
MUTATION = RESULTS.parent / "mutation.json"
SEED, COUNT = 3, 30
LAUNCHES = 45
SECONDS = 25


def main() -> int:
    """Link, or launch what was linked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--link", action="store_true", help="link everything (needs no GPU)")
    parser.add_argument("--missing", action="store_true", help="link what the plan lacks")
    parser.add_argument("--limit", type=float, default=120, help="seconds; starts nothing after")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    return (
        link_all(arguments.missing) if arguments.link else run_all(arguments.out, arguments.limit)
    )


def drawn(trials: list[str], seed: int = SEED, count: int = COUNT) -> list[str]:
    """Yield mutants as drawn: `count`, then substitutes for rejected ones."""
    turn = random.Random(seed)
    first = turn.sample(range(len(trials)), min(count, len(trials)))
    others = [place for place in range(len(trials)) if place not in first]
    turn.shuffle(others)
    return [trials[place] for place in (*first, *others)]


def accepted(text: str) -> bool:
    """Return whether no stage rejects the mutant of a line and the GPU can run it."""
    import shipped_declarations
    from whole import outcome

    from benchmarks.validation.repository_copy import ARCH

    if ARCH not in shipped_declarations.megakernels()[text.partition(":")[0]]["archs"]:
        return False
    return not outcome(*found_by(text)).stage


def link_all(missing: bool) -> int:
    """Link every drawn mutant with `jitter`; record whether its machine code differs."""
    from benchmarks.validation.repository_copy import Copy

    copy = Copy(BUILD / "proof.trials")
    rows: list[dict[str, Any]] = []
    before: dict[str, str] = {}
    old = {row["text"]: row for row in read(PLAN).get("trials", []) if "problem" not in row}
    for text in drawn(read(MUTATION)["trials"]):
        if sum("problem" not in row for row in rows) == COUNT:
            break
        if not accepted(text):  # the list is older than a check
            continue
        if missing and text in old:
            rows.append(old[text])
            continue
        start = time.monotonic()
        rows.append(link_one(text, copy, before))
        said = rows[-1].get("problem", "the same code" if rows[-1].get("same") else "other code")
        print(f"{text}: {said}, {time.monotonic() - start:.0f} s", flush=True)
        put(PLAN, "trials", rows)
    put(PLAN, "trials", rows)
    return 0


def link_one(text: str, copy: Any, before: dict[str, str]) -> dict[str, Any]:
    """Return the row of the plan for one mutant; before: digests of the unchanged megakernels."""
    from whole import outcome

    from benchmarks.validation.repository_copy import NotLinked

    megakernel, mutant = found_by(text)
    row: dict[str, Any] = {"name": name_of(text), "megakernel": megakernel, "text": text}
    row |= {"reason": outcome(megakernel, mutant).reason, "sizes": {}}
    try:
        if megakernel not in before:  # unchanged, with the same runtime
            before[megakernel] = audit_of(copy.build(megakernel, "jitter"), megakernel)
        with copy.edited(files_of(megakernel, mutant)):
            folder = copy.build(megakernel, "jitter")
            keep(folder, megakernel, TRIALS / row["name"])
            row["same"] = audit_of(folder, megakernel) == before[megakernel]
    except NotLinked as problem:
        row["problem"] = str(problem)
    return row


def name_of(text: str) -> str:
    """Return a number that does not depend on the other mutants."""
    return f"trial_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def found_by(text: str) -> tuple[str, Any]:
    """Return (megakernel, mutant) of a line of the list."""
    from whole import mutants

    megakernel, _, rest = text.partition(": ")
    for mutant in mutants(megakernel):
        owner = mutant.component or "declaration"
        if rest == f"{owner} {mutant.clause}: {mutant.before} -> {mutant.after}":
            return megakernel, mutant
    raise ValueError(f"there is no mutant {text!r}: run benchmarks/validation/mutation.py")


def files_of(megakernel: str, mutant: Any) -> dict[str, str]:
    """Return the changed contract or SConscript."""
    import shipped_declarations
    import yaml
    from mutants import applied
    from verdicts import texts

    from benchmarks.validation.repository_copy import sconscript_of

    if mutant.component:
        data = applied(texts()[mutant.component], mutant)
        name = mutant.component.removeprefix("//").replace(":", "/") + ".contract.yaml"
        return {name: yaml.safe_dump(data, sort_keys=False, width=1000)}
    declaration = applied(shipped_declarations.megakernels()[megakernel], mutant)
    return {f"megakernels/{megakernel}/SConscript": sconscript_of(declaration)}


def audit_of(folder: Path, name: str) -> str:
    """Return the digest of the machine code in a folder; empty if there is none."""
    found: str = read(folder / f"{name}.audit.json").get("text_sha256", "")
    return found


def run_all(out: Path, limit: float) -> int:
    """Launch every linked mutant in a separate process; return 1 if one is wrong or not run."""
    import correctness  # noqa: F401  what children need is imported once
    import torch  # noqa: F401

    import pipelink_rules.launch  # noqa: F401
    from benchmarks.validation.isolated_process import in_child
    from benchmarks.validation.run_suspect import observation, tried, verdict_of

    plan = read(PLAN)
    section = open_section(out, "trials")
    if section is None:
        return 1
    section.head(seed=SEED)
    end = time.monotonic() + limit
    wrong = 0
    for row in plan.get("trials", []):
        name = row["megakernel"]
        seen: dict[str, Any] = {"problem": row.get("problem", f"left out, {limit:g} s are over")}
        if "problem" not in row and time.monotonic() < end:
            path = TRIALS / row["name"] / f"{name}.manifest.json"
            as_it_is = manifests("release").get(name)
            seen = in_child(tried, path, name, row["sizes"], LAUNCHES, as_it_is, seconds=SECONDS)
        verdict = "refused" if "problem" in row else verdict_of(seen)
        wrong += verdict not in ("right", "refused")
        print(f"{row['text']}: {verdict}: {observation(seen)}", flush=True)
        section.row({**row, "verdict": verdict, "observed": observation(seen), "seen": seen})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
