"""Did the inputs of a step stay as they were while it ran?"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.files.atomic import sha256
from pipelink_rules.model.source_span import Span


def require_unchanged(before: Mapping[str, str]) -> None:
    """Raises PL1304 for every file that no longer has the sha256 it had."""
    changed = [
        name
        for name, digest in before.items()
        if not os.path.isfile(name) or sha256(name) != digest
    ]
    if changed:
        raise PipelinkError(
            Diagnostic(
                "PL1304",
                f"{name} changed while it was being used",
                (Label(Span(name)),),
                expected="inputs that stay as they are during a build",
                found="other contents after the step than before it",
                helps=("build again",),
                subject=name,
            )
            for name in changed
        )
