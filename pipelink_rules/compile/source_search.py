"""Where in a component's files does a finding come from?  PTX has no lines: words are sought."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Variant


@dataclass(frozen=True)
class Sources:
    """The component's own files, to say where a finding comes from."""

    texts: Mapping[str, str]  # file -> text

    def find(self, pattern: str) -> Label | None:
        """The first place outside of comments where the pattern matches."""
        for file, text in self.texts.items():
            for number, line in enumerate(text.splitlines(), 1):
                code = line.split("//", 1)[0]
                hit = re.search(pattern, code)
                if hit:
                    length = max(1, hit.end() - hit.start())
                    return Label(Span(file, number, hit.start() + 1, length), "here")
        return None


def finding(
    code: str, message: str, variant: Variant, label: Label | None, subject: str, **clauses: object
) -> Diagnostic:
    """A finding about a component: the place in its source where known, then its contract."""
    contract = variant.contract
    place = contract.span or (Span(contract.file) if contract.file else None)
    labels = [label] if label else []
    labels += [Label(place, f"the contract of `{contract.component}`")] if place else []
    return Diagnostic(code, message, tuple(labels), subject=subject, **clauses)  # type: ignore[arg-type]
