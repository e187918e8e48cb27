"""Golden stage `declare`: what reading, inferring and collecting a declaration says.

A case is an SConscript that declares one megakernel, with contracts of its own
(`*.contract.yaml`, labels `//case:name`), and optionally `unbuilt`: instances that have no
interface yet.  The components `//parts:...` of all cases are in `declare_components/`: small
copies that change only with the cases.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from pipelink_rules.check.check import resolve_checked
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.render import render_text
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import MegakernelSpec
from pipelink_rules.model.source_span import Span
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.spec import parse_declaration

PARTS = Path(__file__).resolve().parent / "declare_components"
DECLARATION = "megakernels/linear/SConscript"


def run(case: Path) -> str:
    """The text a user would see, in a repository made of the case and the shared parts."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / DECLARATION).parent.mkdir(parents=True)
        shutil.copy(case / "SConscript", root / DECLARATION)
        contracts: dict[str, Contract] = {}
        for package, origin in (("parts", PARTS), ("case", case)):
            (root / package).mkdir()
            for path in sorted(origin.glob("*.contract.yaml")):
                shutil.copy(path, root / package)
                contract = parse_contract(path.read_text(), f"{package}/{path.name}")
                contracts[f"//{package}:{contract.component}"] = contract
        unbuilt = case / "unbuilt"
        missing = unbuilt.read_text().split() if unbuilt.exists() else []
        try:
            _collect((root / DECLARATION).read_text(), contracts, missing)
        except PipelinkError as problem:
            return render_text(problem.diagnostics, root=root, outcome="nothing was compiled")
    return "no findings\n"


def _collect(text: str, contracts: dict[str, Contract], missing: list[str]) -> None:
    spec = _declared(text)
    variants = bind_instances(spec, contracts)
    for name in missing:
        del variants[name]
    for arch in spec.archs:
        resolve_checked(spec, variants, arch)


def _declared(text: str) -> MegakernelSpec:
    """The one megakernel that an SConscript declares, as the build would read it."""
    found: list[MegakernelSpec] = []

    class Environment:
        def Megakernel(self, **clauses: Any) -> None:
            line = sys._getframe(1).f_lineno
            found.append(parse_declaration(**clauses, span=Span(DECLARATION, line, 1), text=text))

    exec(compile(text, DECLARATION, "exec"), {"env": Environment()})  # a test's own file
    (spec,) = found
    return spec
