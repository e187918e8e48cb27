"""What does the build say to a mutant?  The way of a user's edit, from the text to the placement.

A contract is written as YAML and loaded, every instance is bound, the program collected, checked,
placed, and checked once more with the stage counts of the placement.  In place of compiling, what
the probe measured of the real objects (`measured.json`) is compared with what the mutant promises.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import shipped_declarations
import yaml
from mutants import Mutant, applied

from pipelink_rules.actions.build_key import strip_locations
from pipelink_rules.actions.component import check_measurements
from pipelink_rules.check.check import check, check_stages, resolve_checked
from pipelink_rules.contract.derive import complete
from pipelink_rules.contract.header import emit_header
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.contract.yaml_tree import MappingNode, Node, SequenceNode, parse_yaml
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.model.variant import Measured, Variant
from pipelink_rules.place.place import place
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.spec import parse_declaration

ARCH = "sm_90a"


class Verdict(NamedTuple):
    """Where a mutant was stopped and with which codes; what it became where it was not."""

    stage: str  # "load", "bind", "collect", "check", "probe", "place"; "" = accepted
    codes: tuple[str, ...] = ()
    program: Program | None = None
    placement: Placement | None = None


@cache
def texts() -> dict[str, dict[str, Any]]:
    """Label -> contract of the repository as plain data, derived clauses written out.

    A mutant changes one clause: also one that the contract leaves to be derived.
    """
    found = {}
    for path in sorted((shipped_declarations.REPOSITORY / "components").glob("*/*.contract.yaml")):
        package = path.parent.relative_to(shipped_declarations.REPOSITORY).as_posix()
        label = f"//{package}:{path.name.split('.')[0]}"
        nodes = parse_yaml(path.read_text(encoding="utf-8"), str(path))
        found[label] = data_of(complete(nodes, str(path)))
    return found


def data_of(node: Node) -> Any:
    """A node as plain data."""
    if isinstance(node, MappingNode):
        return {
            key.text: data_of(value)
            for key, value in node.entries
            if not (key.derived and key.text == "min")  # an estimate, which would become a promise
        }
    if isinstance(node, SequenceNode):
        return [data_of(item) for item in node.items]
    return yaml.safe_load(node.text) if node.plain else node.text


@cache
def measured() -> dict[tuple[str, tuple[tuple[str, int | str], ...]], dict[str, Measured]]:
    """(component, arguments) -> role -> registers that the probe found."""
    rows = json.loads((Path(__file__).parent / "measured.json").read_text(encoding="utf-8"))
    return {
        (component, tuple(sorted(arguments.items()))): {
            role: Measured(registers, entry, 0, 0) for role, (registers, entry) in roles.items()
        }
        for component, arguments, roles in rows
    }


_loaded: dict[tuple[str, str, str, str], Contract | Verdict] = {}


def _contract(mutant: Mutant) -> Contract | Verdict:
    key = (mutant.component, mutant.clause, mutant.kind, f"{mutant.before} {mutant.after}")
    if key not in _loaded:
        data = applied(texts()[mutant.component], mutant)
        text = yaml.safe_dump(data, sort_keys=False, width=1000)
        try:
            _loaded[key] = parse_contract(text, "mutant.contract.yaml")
        except PipelinkError as problem:
            _loaded[key] = _stopped("load", problem)
    return _loaded[key]


def _stopped(stage: str, problem: PipelinkError) -> Verdict:
    return Verdict(stage, tuple(sorted({item.code for item in problem.diagnostics})))


def verdict_of(megakernel: str, mutant: Mutant) -> Verdict:
    """What becomes of a megakernel with this change."""
    declaration = dict(shipped_declarations.megakernels()[megakernel])
    contracts = dict(shipped_declarations.contracts())
    if mutant.component:
        contract = _contract(mutant)
        if isinstance(contract, Verdict):
            return contract
        contracts[mutant.component] = contract
    else:
        declaration = applied(declaration, mutant)
    return run(declaration, contracts, megakernel)


@cache
def original(megakernel: str) -> Verdict:
    """The same for the megakernel as it is."""
    return run(shipped_declarations.megakernels()[megakernel], shipped_declarations.contracts())


def run(
    declaration: dict[str, Any], contracts: dict[str, Contract], megakernel: str = ""
) -> Verdict:
    """The stages of a link, up to the placement; `megakernel`: what it was before the change."""
    stage, broken = "bind", False
    try:
        spec = parse_declaration(**declaration)
        variants = bind_instances(spec, contracts, {})
        if megakernel and declaration == shipped_declarations.megakernels()[megakernel]:
            before = original(megakernel)
            assert before.program is not None
            known = {item.name: item.variant for item in before.program.instances}
            if all(bare(variants[name]) == bare(known[name]) for name in known):
                return before  # nothing that the later stages read has changed
            broken = not all(
                compiles(label, known[name], variants[name])
                for name, (label, _) in declaration["instances"].items()
            )
        stage = "collect"
        program = resolve_checked(spec, variants, spec.archs[0])
    except PipelinkError as problem:
        return _stopped(stage, problem)
    target = TARGETS[program.target]
    found = check(program, target)
    if any(item.severity == "error" for item in found):
        return Verdict("check", tuple(sorted({item.code for item in found})))
    if broken:
        return Verdict("compile", ("PL0905",))
    try:
        probed = {name: _probed(variant) for name, variant in variants.items()}
    except PipelinkError as problem:
        return _stopped("probe", problem)
    try:
        program = resolve_checked(spec, probed, spec.archs[0])
        placement = place(placement_problem(program))
    except PipelinkError as problem:
        return _stopped("place", problem)
    found = check_stages(program, target, dict(placement.stages))
    if any(item.severity == "error" for item in found):
        return Verdict("place", tuple(sorted({item.code for item in found})))
    return Verdict("", (), program, placement)


def bare(variant: Variant) -> Variant:
    """Without places, prose, digests and the ranges of parameters."""
    contract = replace(variant.contract, params=(), where=(), archs=(), version="")
    return strip_locations(replace(variant, digest="", measured=(), contract=contract))


def compiles(label: str, before: Variant, after: Variant) -> bool:
    """Whether the generated header still has what the source names, in the same kind.

    The compiler would say it (PL0905); here the names of the header are compared.
    """
    if before.contract == after.contract:
        return True
    package, _, name = label.removeprefix("//").partition(":")
    source = (shipped_declarations.REPOSITORY / package / f"{name}.cu").read_text(encoding="utf-8")
    used = set(_WORD.findall(source))
    one, two = (_declared(emit_header(variant)) for variant in (before, after))
    return not {word for word, kind in one.items() if word in used and two.get(word) != kind}


_WORD = re.compile(r"[A-Za-z_]\w*")
_FIELD = re.compile(
    r"(?:(TensorMap|Cursor|float \(&|Ring|Buffer|NamedBarrier)\S*)? ?\b(\w+)(?:\)?\S*;| =)"
)


def _declared(header: str) -> dict[str, str]:
    """Name -> kind of what a generated header declares."""
    return {match[2]: match[1] or "" for match in _FIELD.finditer(header)}


def _probed(variant: Variant) -> Variant:
    """With what the probe measured of the object that the source gives."""
    known = measured().get((variant.contract.component, variant.arguments), {})
    roles = [role for role in variant.contract.roles if role.name in known]
    check_measurements(roles, known, variant.contract.component)
    return replace(variant, measured=tuple((role.name, known[role.name]) for role in roles))
