"""Checks of targets, warps and commits of roles that use tensor memory."""

from collections.abc import Iterator

from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import list_of, plural
from pipelink_rules.model.contract import Operation, Role
from pipelink_rules.model.operation import operations
from pipelink_rules.model.target import TARGETS

QUADRANTS = 4  # warp w of a warpgroup reaches lanes 32 * w to 32 * w + 31


def check_tensor_memory_available(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0810: the target has tensor memory."""
    if index.target.tmem_columns:
        return
    target = index.target.name
    have = [other.name for other in TARGETS.values() if other.tmem_columns]
    for instance, _, port in index.ports():
        if port.space != "tensor_memory":
            continue
        yield report(
            "PL0810",
            f"port `{instance}.{port.name}` requires tensor memory, which {target} does not have",
            (port.where("space"), "tensor memory"),
            (index.program.spec.where("archs", target), "requested here"),
            expected=f"a target with tensor memory: {', '.join(have)}",
            found=target,
            suggestions=(
                f"remove {target} from `archs`",
                "or use a component with accumulators in registers",
            ),
            subject=f"{instance}.{port.name}",
        )


def check_lane_coverage(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0702: roles that move data between tensor memory and registers have whole warpgroups."""
    for instance, role, op in _tensor_ops(index, ("read", "write")):
        warps = index.home(instance, role.name).warps
        if warps % QUADRANTS == 0:
            continue
        missed = range(warps % QUADRANTS, QUADRANTS)
        left = ", ".join(f"{32 * place} to {32 * place + 31}" for place in missed)
        yield report(
            "PL0702",
            f"role `{instance}.{role.name}` accesses tensor memory with {plural(warps, 'warp')}",
            (role.where("warps"), plural(warps, "warp")),
            (op.span, "a warp accesses the 32 lanes of its rank in the warpgroup"),
            expected="a multiple of 4 warps",
            found=plural(warps, "warp"),
            at_run_time=f"no warp accesses lanes {left} of some columns: rows are missing",
            suggestions=(
                f"set `warps: {-(-warps // QUADRANTS) * QUADRANTS}` in role `{role.name}`",
            ),
            subject=f"{instance}.{role.name}",
        )


def check_single_issuer(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0707: one thread issues tcgen05.mma, so its role is one warp."""
    for instance, role, op in _tensor_ops(index, ("mma",)):
        warps = index.home(instance, role.name).warps
        if warps == 1:
            continue
        yield report(
            "PL0707",
            f"role `{instance}.{role.name}` issues tcgen05.mma from {plural(warps, 'warp')}",
            (role.where("warps"), plural(warps, "warp")),
            (op.span, "issued by one thread of every warp"),
            expected="1 warp",
            found=plural(warps, "warp"),
            at_run_time=f"every product is added {warps} times: always wrong results",
            suggestions=(f"set `warps: 1` in role `{role.name}`",),
            subject=f"{instance}.{role.name}",
        )


def _tensor_ops(
    index: ProgramIndex, verbs: tuple[str, ...]
) -> Iterator[tuple[str, Role, Operation]]:
    """Yield (instance, role, operation): the first of each role that uses tensor memory."""
    for instance, contract, role in index.roles():
        tensor = {port.name for port in contract.ports if port.space == "tensor_memory"}
        for op in operations(role.body):
            if op.verb in verbs and (op.source if op.verb == "mma" else op.target) in tensor:
                yield instance, role, op
                break


def check_commit_scope(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0811: a stage filled by a multicast is released to all CTAs that fill it."""
    for instance, role, op in index.operations("commit"):
        end = (instance, op.target)
        channel = index.protocol.channels.get(end)
        if not op.source or not channel or not channel.multicast or end not in channel.consumers:
            continue
        connection = index.connection(channel, end)
        members = list_of(item.member for item in channel.multicast)
        yield report(
            "PL0811",
            f"`{connection.name}` is a multicast, but `commit mma -> {op.target}` of "
            f"`{instance}.{role.name}` releases it only to its own CTA",
            (op.span, "arrives only in this CTA"),
            (connection.span, f"the CTAs of a cluster load {members} for each other"),
            expected="a ring that only its own CTA fills",
            found=f"a multicast of {members}",
            at_run_time="the other CTAs hang waiting for an empty stage",
            suggestions=(f'disable the multicast: transfers={{"{qualified_name(end)}": "ring"}}',),
            subject=connection.name,
        )


CHECKS = (
    check_commit_scope,
    check_tensor_memory_available,
    check_lane_coverage,
    check_single_issuer,
)
