"""Resolution of a declaration: Spec, variants, target -> Program.

Ports are connected, transfers chosen, rings sized and roles grouped by warps.  Only what a program
needs to exist is checked here, and nothing is placed.
"""

from collections.abc import Mapping
from dataclasses import replace

from pipelink_rules.diagnostics.diagnostic import DiagnosticSink
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.model.program import Bindings, Instance, MegakernelSpec, Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.model.variant import Variant
from pipelink_rules.program.channels import channels_of, choose_transfers
from pipelink_rules.program.connections import PortPair, check_connections, parse_endpoint
from pipelink_rules.program.multicast import MulticastAnalysis
from pipelink_rules.program.roles import program_roles
from pipelink_rules.program.spec import check_instances
from pipelink_rules.program.work_tiles import check_work, find_scheduler


def resolve(spec: MegakernelSpec, variants: Mapping[str, Variant], target_name: str) -> Program:
    """Return the program of a megakernel for one target.

    variants: instance -> bound variant.  The result does not depend on the order of `variants`.
    Raise all diagnostics of a pass together (PL0044..PL0076).
    """
    program, pairs = _outline(spec, variants, target_name)
    contracts = {item.name: item.variant.contract for item in program.instances}
    findings = DiagnosticSink()
    analysis = MulticastAnalysis(spec.cluster, contracts, program.scheduler[0])
    connections = choose_transfers(spec, contracts, pairs, analysis, findings)
    channels = channels_of(spec, contracts, connections, analysis, findings)
    roles = program_roles(spec, variants, connections, findings)
    findings.raise_if_any()
    return replace(
        program, connections=tuple(connections), channels=tuple(channels), roles=tuple(roles)
    )


def outline(spec: MegakernelSpec, variants: Mapping[str, Variant], target_name: str) -> Program:
    """Return the program before transfers are chosen: no connections, channels or roles."""
    return _outline(spec, variants, target_name)[0]


def _outline(
    spec: MegakernelSpec, variants: Mapping[str, Variant], target_name: str
) -> tuple[Program, list[PortPair]]:
    findings = check_instances(spec)
    if target_name not in TARGETS:
        findings.add(
            "PL0046",
            f"unknown target `{target_name}`",
            spec.where("archs", target_name),
            suggestions=similar_name_help(target_name, TARGETS),
            subject=target_name,
        )
    findings.raise_if_any()
    instances = _instances(spec, variants, target_name, findings)
    contracts = {instance.name: instance.variant.contract for instance in instances}
    pairs = check_connections(spec, contracts, findings)
    scheduler = find_scheduler(spec, contracts, findings)
    check_work(spec, contracts, scheduler, findings)
    findings.raise_if_any()
    assert scheduler is not None  # reported above otherwise
    symbols = {symbol.name for contract in contracts.values() for symbol in contract.symbols}
    program = Program(
        name=spec.name,
        target=target_name,
        instances=tuple(instances),
        connections=(),
        channels=(),
        roles=(),
        scheduler=scheduler,
        tensors=_bindings(spec.tensors),
        scalars=_bindings(spec.scalars),
        symbols=tuple(sorted(symbols)),
        occupancy=spec.occupancy,
        cluster=spec.cluster,
        runtime=spec.runtime,
        spec=spec,
    )
    return program, pairs


def _instances(
    spec: MegakernelSpec,
    variants: Mapping[str, Variant],
    target_name: str,
    findings: DiagnosticSink,
) -> list[Instance]:
    """Return the instances, sorted by name (PL0069, PL0076)."""
    found = []
    for item in sorted(spec.instances, key=lambda one: one.name):
        variant = variants.get(item.name)
        if variant is None:
            findings.add(
                "PL0076",
                f"missing interface of `{item.name}`",
                (spec.where("instances", item.name), f"an instance of {item.label}"),
                suggestions=(f"run `scons {item.label}`",),
                subject=item.name,
            )
            continue
        contract = variant.contract
        if target_name not in contract.archs:
            findings.add(
                "PL0069",
                f"component `{contract.component}` of `{item.name}` does not support {target_name}",
                spec.where("instances", item.name),
                (contract.span, f"supports {', '.join(contract.archs)}"),
                (spec.where("archs", target_name), "requested here"),
                expected=target_name,
                found=", ".join(contract.archs),
                suggestions=(f"remove {target_name} from `archs`", "or use another component"),
                subject=item.name,
            )
        found.append(Instance(item.name, item.label, variant, item.span))
    return found


def _bindings(entries: tuple[tuple[str, tuple[str, ...]], ...]) -> Bindings:
    """Return keyword -> ports, in the order of the kernel's parameters (as declared)."""
    return tuple((keyword, tuple(parse_endpoint(end) for end in ends)) for keyword, ends in entries)
