"""All mutants of the repository, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import shipped_declarations
from declarations import mutants_of_declaration
from mutants import Mutant, mutants_of
from reasons import Case, reason_of
from verdicts import original, texts, verdict_of


class Outcome(NamedTuple):
    """One mutant: killed at a stage with codes, or accepted for a reason ("" = a survivor)."""

    megakernel: str
    component: str
    kind: str
    clause: str
    before: str
    after: str
    stage: str
    codes: tuple[str, ...]
    reason: str

    @property
    def text(self) -> str:
        """One line for people."""
        owner = self.component or "declaration"
        return f"{self.megakernel}: {owner} {self.clause}: {self.before} -> {self.after}"


@cache
def mutants(megakernel: str) -> tuple[Mutant, ...]:
    """Of the contracts it uses, each once, and of its declaration."""
    declaration = shipped_declarations.megakernels()[megakernel]
    labels = dict.fromkeys(label for label, _ in declaration["instances"].values())
    found = [mutant for label in labels for mutant in mutants_of(label, texts()[label])]
    return (*found, *mutants_of_declaration(declaration))


def outcome(megakernel: str, mutant: Mutant) -> Outcome:
    """The way of one mutant."""
    verdict = verdict_of(megakernel, mutant)
    reason = ""
    if not verdict.stage:
        before = original(megakernel)
        assert before.program is not None
        scheduler = before.program.scheduler[0]
        schedule = shipped_declarations.megakernels()[megakernel]["instances"][scheduler][0]
        reason = reason_of(Case(before, verdict, mutant, schedule))
    return Outcome(
        megakernel,
        mutant.component,
        mutant.kind,
        mutant.clause,
        mutant.before,
        mutant.after,
        verdict.stage,
        verdict.codes,
        reason,
    )


def outcomes(megakernel: str) -> Iterator[Outcome]:
    """The way of all its mutants."""
    for mutant in mutants(megakernel):
        yield outcome(megakernel, mutant)
