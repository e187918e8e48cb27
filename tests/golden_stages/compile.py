"""Golden stage `compile`: what compiling and probing a component says.

A case is a contract and its source.  What the tools would have made of them is kept beside it:
`shadow.ptx` (scanned and audited), `nvcc.txt` (the compiler's refusal), `measured.json` (the
probe's result) or `copts` (options, one a line).  In PTX `@role@` stands for an entry symbol and
`@digest@` for the digest of the variant.  tests/live compiles the same cases with the real tools.
Cases of other kinds have a `case.py` with `run()`, which returns or raises findings.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path

from link_fixtures import DIGEST, variant_of

from pipelink_rules.actions.component import check_measurements, runtime_operations
from pipelink_rules.audit.audit_component import audit_component
from pipelink_rules.compile.options import classify_options
from pipelink_rules.compile.ptx_scan import Sources, scan
from pipelink_rules.contract.header import emit_header
from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.diagnostics.render import render_text
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Measured, Variant
from pipelink_rules.toolkit.compiler_errors import Subject, diagnose
from pipelink_rules.toolkit.process import ToolOutput
from pipelink_rules.toolkit.ptx import Module, read_ptx

ROOT = Path(__file__).resolve().parent.parent.parent
ARGUMENTS = {"TM": 128, "TN": 128, "TK": 64}


def run(case: Path) -> str:
    """The text a user would see."""
    if (case / "case.py").is_file():
        return _text(_of_case(case), case)
    variant = variant_of(case, **ARGUMENTS)
    text = _text(_findings(case, variant), case)
    return text.replace(variant.digest, DIGEST)


def _text(findings: Iterable[Diagnostic], case: Path) -> str:
    text = render_text(findings, root=case, outcome="nothing was written")
    return text.replace(str(case), "CASE")


def _of_case(case: Path) -> tuple[Diagnostic, ...]:
    spec = importlib.util.spec_from_file_location("golden_case", case / "case.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        return tuple(module.run())
    except PipelinkError as problem:
        return problem.diagnostics


def _audited(module: Module, variant: Variant, case: Path) -> tuple[Diagnostic, ...]:
    strict = (case / "strict").is_file()
    return audit_component(module, variant, strict=strict).diagnostics


def _findings(case: Path, variant: Variant) -> tuple[Diagnostic, ...]:
    source = next(case.glob("*.cu"))
    if (case / "shadow.ptx").is_file():
        ptx = (case / "shadow.ptx").read_text(encoding="utf-8").replace("@digest@", variant.digest)
        for role in variant.contract.roles:
            ptx = ptx.replace(f"@{role.name}@", variant.symbol(role.name))
        texts = Sources({source.name: source.read_text(encoding="utf-8")})
        operations = runtime_operations([ROOT / "components/include"])
        module = read_ptx(ptx)
        return scan(module, variant, texts, operations) or _audited(module, variant, case)
    if (case / "nvcc.txt").is_file():
        text = (case / "nvcc.txt").read_text(encoding="utf-8")
        output = ToolOutput(("nvcc", source.name), 2, text)
        subject = Subject(
            f"component `{variant.contract.component}`", variant.contract, emit_header(variant)
        )
        return (diagnose(output, subject),)
    try:
        if (case / "measured.json").is_file():
            found = json.loads((case / "measured.json").read_text(encoding="utf-8"))
            measured = {role: Measured(**numbers) for role, numbers in found.items()}
            check_measurements(variant.contract.roles, measured, variant.contract.component)
        else:
            options = (case / "copts").read_text(encoding="utf-8").split()
            classify_options(options, Span("SConscript", 5, 12, 20))
    except PipelinkError as problem:
        return problem.diagnostics
    return ()
