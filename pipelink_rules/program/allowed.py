"""Which findings does a declaration allow, and does it say why?  `allow=` -> (code, reason)."""

from __future__ import annotations

from typing import Any

from pipelink_rules.diagnostics.allow import is_allowable
from pipelink_rules.diagnostics.catalogue import code_of, similar
from pipelink_rules.model.source_span import Span
from pipelink_rules.program.declaration_parser import DeclarationParser

SHORTEST = 3  # words of a reason: one that can be read in a year


def read_allow(reader: DeclarationParser, value: Any) -> tuple[tuple[str, str], ...]:
    """Codes with their reasons, sorted; PL0077 where a code or a reason cannot stand."""
    found = []
    for code, reason in reader.mapping(value, "allow", 'a dict {"PL0505": "why it is harmless"}'):
        place = reader.place("allow", code)
        if not is_allowable(code):
            _refuse(reader, code, place)
        elif not isinstance(reason, str) or len(reason.split()) < SHORTEST:
            reader.findings.add(
                "PL0077",
                f"{code} is allowed without a reason",
                place,
                expected=f"a reason in words: {SHORTEST} or more",
                found=f"{reason!r:.60}",
                helps=("say why this kernel is right all the same; the manifest keeps it",),
                subject=f"allow/{code}",
            )
        else:
            found.append((code, " ".join(reason.split())))
    return tuple(sorted(found))


def _refuse(reader: DeclarationParser, code: str, place: Span | None) -> None:
    row = code_of(code)
    nearest = similar(code) if row is None else ""
    reader.findings.add(
        "PL0077",
        f"{code} cannot be allowed" if row else f"there is no code `{code[:60]}` to allow",
        place,
        expected="a code that the check finds, or the audit of the linked kernel",
        found=f"a code of the stage `{row.stage}`: without it there is nothing to link"
        if row
        else "",
        helps=(f"did you mean {nearest}?",) if nearest else (),
        subject=f"allow/{code}",
    )
