"""Inference of parameters: Spec, contracts -> instance -> Variant with all parameters bound.

Parameters that the declaration omits are inferred from connected ports, from the work tile that
all components of a work kind share, from tensors bound to several ports, from `where` clauses with
one solution, and last from defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipelink_rules.contract.bind import bind
from pipelink_rules.diagnostics.diagnostic import Diagnostic, DiagnosticSink, Label, PipelinkError
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.expression.expression import names
from pipelink_rules.model.contract import Contract, Param
from pipelink_rules.model.program import MegakernelSpec
from pipelink_rules.model.variant import Variant
from pipelink_rules.program.connections import check_connections, parse_endpoint
from pipelink_rules.program.spec import check_instances
from pipelink_rules.program.unify import Fact, Key, ParameterSolver, equalities
from pipelink_rules.program.work_tiles import check_work, find_scheduler


def bind_instances(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    flags: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Variant]:
    """Return instance -> bound variant, in the order of the declaration.

    contracts: label -> contract, unbound.  flags: label -> code-generation flags.  Raise all
    diagnostics of a pass together: labels, ports and work (PL0050..PL0067), then those of binding.
    """
    findings = check_instances(spec)
    findings.raise_if_any()
    by_instance = _contracts_of(spec, contracts, findings)
    links = check_connections(spec, by_instance, findings)
    scheduler = find_scheduler(spec, by_instance, findings)
    check_work(spec, by_instance, scheduler, findings)
    _check_parameters(spec, by_instance, findings)
    findings.raise_if_any()

    solver = ParameterSolver(by_instance, equalities(spec, by_instance, links))
    for item in spec.instances:
        for name, value in item.arguments:
            place = spec.where("instances", item.name, name)
            solver.assign((item.name, name), value, place)
    _follow_cluster(spec, by_instance, scheduler, solver)
    solver.solve()
    _report(spec, solver, findings)
    findings.raise_if_any()

    bound: dict[str, Variant] = {}
    rejected: dict[Key, Diagnostic] = {}
    for item in spec.instances:
        arguments = solver.environment(item.name)
        chosen = tuple((flags or {}).get(item.label, ()))
        place = spec.where("instances", item.name)
        try:
            bound[item.name] = bind(by_instance[item.name], arguments, chosen, place)
        except PipelinkError as problem:
            for one in problem.diagnostics:
                key = (item.name, one.subject.rpartition(".")[2])
                rejected[key if key in solver.facts else (item.name, one.subject)] = one
    findings.extend(
        _explained(spec, solver, key, found)
        for key, found in rejected.items()
        if not _follows_from_another(solver, key, rejected)
    )
    findings.raise_if_any()
    return bound


def _follow_cluster(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    scheduler: tuple[str, str] | None,
    solver: ParameterSolver,
) -> None:
    """Derive parameters that are extents of the tile scheduler's cluster."""
    work = contracts[scheduler[0]].work if scheduler else None
    if scheduler is None or work is None:
        return
    params = {param.name for param in contracts[scheduler[0]].params}
    for extent, size in zip(work.cluster, spec.cluster, strict=False):
        if extent.text in params:
            key = (scheduler[0], extent.text)
            solver.derive(key, size, spec.where("cluster"), "the declared cluster")


def _contracts_of(
    spec: MegakernelSpec, contracts: Mapping[str, Contract], findings: DiagnosticSink
) -> dict[str, Contract]:
    found = {}
    for item in spec.instances:
        if item.label in contracts:
            found[item.name] = contracts[item.label]
            continue
        findings.add(
            "PL0050",
            f"unknown component `{item.label}`",
            (
                spec.where("labels", item.name) or spec.where("instances", item.name),
                f"`{item.name}` is an instance of it",
            ),
            suggestions=similar_name_help(item.label, contracts),
            subject=item.name,
        )
    return found


def _check_parameters(
    spec: MegakernelSpec, contracts: Mapping[str, Contract], findings: DiagnosticSink
) -> None:
    for item in spec.instances:
        contract = contracts.get(item.name)
        known = [param.name for param in contract.params] if contract else []
        for name, _ in item.arguments if contract else ():
            if contract is not None and name not in known:
                findings.add(
                    "PL0023",
                    f"unknown parameter `{name}` for component `{contract.component}`",
                    spec.where("instances", item.name, name),
                    (contract.span, f"parameters: {', '.join(known) or 'none'}"),
                    suggestions=similar_name_help(name, known),
                    subject=f"{item.name}.{name}",
                )


def _report(spec: MegakernelSpec, solver: ParameterSolver, findings: DiagnosticSink) -> None:
    for key, first, second in solver.conflicts:
        _report_conflict(spec, key, first, second, findings)
    order = {item.name: position for position, item in enumerate(spec.instances)}
    for members in _independent(solver):
        _report_unknown(spec, solver, sorted(members, key=lambda key: order[key[0]]), findings)


def _independent(solver: ParameterSolver) -> list[list[Key]]:
    """Return the unknown groups without those that a `where` clause relates to a larger one."""
    groups = solver.classes()
    of = {key: group for group in groups for key in group}
    found = []
    for group in groups:
        (instance, name), *others = group
        tied = {
            (instance, other)
            for clause in solver.contracts[instance].where
            if name in names(clause)
            for other in names(clause)
        }
        if others or not any(len(of.get(key, ())) > 1 for key in tied):
            found.append(group)
    return found


def _report_conflict(
    spec: MegakernelSpec, key: Key, first: Fact, second: Fact, findings: DiagnosticSink
) -> None:
    instance, name = key
    both = f"{first.value} and {second.value}"
    said = dict.fromkeys((*first.places, *second.places))
    findings.add(
        "PL0064",
        f"conflicting values for parameter `{name}` of `{instance}`: {both}",
        (spec.where("instances", instance), f"`{name}` is omitted here"),
        *said,
        expected="one value",
        found=both,
        suggestions=(
            f"change one of the two values so that both are {first.value} or {second.value}",
            f"or set `{name}` in `{instance}`",
        ),
        subject=f"{instance}.{name}",
    )


def _report_unknown(
    spec: MegakernelSpec, solver: ParameterSolver, members: list[Key], findings: DiagnosticSink
) -> None:
    instance, name = members[0]
    others = [f"`{other}`" for other, _ in members[1:]]
    also = f" (same for {', '.join(others)})" if others else ""
    findings.add(
        "PL0063",
        f"cannot infer parameter `{name}` of `{instance}`{also}",
        (spec.where("instances", instance), f"`{name}` is omitted here"),
        (solver.param(members[0]).span, "it has no default"),
        expected=_domain(solver.param(members[0])),
        found="no value from a connected port, the work tile, a `where` clause or a default",
        suggestions=(f'set it{" once" if others else ""}: {{"{name}": ...}}',),
        subject=f"{instance}.{name}",
    )


def _domain(param: Param) -> str:
    """Describe the allowed values of a parameter."""
    if param.choices:
        return "one of " + ", ".join(map(str, param.choices))
    if param.type == "dtype":
        return "a dtype"
    parts = ["an integer"]
    if param.multiple_of:
        parts = [f"a multiple of {param.multiple_of}"]
    if param.minimum is not None:
        parts.append(f"at least {param.minimum}")
    if param.maximum is not None:
        parts.append(f"at most {param.maximum}")
    return ", ".join(parts)


def _follows_from_another(
    solver: ParameterSolver, key: Key, rejected: Mapping[Key, Diagnostic]
) -> bool:
    """Return whether the value came from a parameter that was rejected itself."""
    fact = solver.facts.get(key)
    return fact is not None and fact.root != ".".join(key) and parse_endpoint(fact.root) in rejected


def _explained(
    spec: MegakernelSpec, solver: ParameterSolver, key: Key, found: Diagnostic
) -> Diagnostic:
    """Point a diagnostic of binding to the entry that set the value, or to its derivation."""
    fact, place = solver.facts.get(key), spec.where("instances", key[0])
    labels = found.labels
    if fact is not None and fact.given:
        exact = spec.where("instances", *key) or place
        labels = tuple(
            replace(label, span=exact) if exact and label.span == place else label
            for label in labels
        )
    elif fact is not None:
        labels += tuple(Label(span, text) for span, text in fact.places if span is not None)
    return replace(found, labels=labels, subject=f"{key[0]}: {found.subject}")
