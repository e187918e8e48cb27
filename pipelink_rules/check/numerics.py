"""Checks that connected components declare the same numerical behavior."""

from collections.abc import Iterator

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.contract.codegen_flags import FLAG_DEFAULTS
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import list_of
from pipelink_rules.model.program import Instance


def check_numerical_contracts(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1102: both ends of registers and tensor memory accumulate alike and treat NaN alike."""
    for connection, port, _ in index.connected_ports():
        if port.space not in ("registers", "tensor_memory"):
            continue
        source = index.contracts[connection.producer[0]].numeric
        sink = index.contracts[connection.consumer[0]].numeric
        for clause in ("accumulate", "nan"):
            given, taken = getattr(source, clause), getattr(sink, clause)
            if not (source.span and sink.span and given and taken) or given == taken:
                continue
            yield report(
                "PL1102",
                f"`{connection.name}` connects `{clause}: {given}` to `{clause}: {taken}`",
                (sink.span, f"{clause}: {taken}"),
                (source.span, f"{clause}: {given}"),
                (connection.span, ""),
                expected=f"{clause}: {given}",
                found=f"{clause}: {taken}",
                at_run_time="the result has only the guarantees that both components declare",
                suggestions=(f"connect components that both declare `{clause}: {given}`",),
                subject=connection.name,
            )


def check_flags(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1208: all objects of a link use the same values of flags that change results."""
    instances = index.program.instances
    for flag, default in FLAG_DEFAULTS.items():
        on: dict[bool, list[Instance]] = {True: [], False: []}
        for instance in instances:
            chosen = dict(item.split("=", 1) for item in instance.variant.flags if "=" in item)
            value = chosen.get(flag)
            on[default if value is None else value == "true"].append(instance)
        if not on[True] or not on[False]:
            continue
        fewer, more = sorted((on[True], on[False]), key=len)
        value, other = ("true", "false") if fewer is on[True] else ("false", "true")
        names = list_of(item.name for item in fewer)
        yield report(
            "PL1208",
            f"{names} compiled with {flag}={value}, but other components with {flag}={other}",
            *((item.span, f"{item.label}: {flag}={value}") for item in fewer),
            (more[0].span, f"{more[0].label}: {flag}={other}"),
            expected=f"one value of {flag} in the whole megakernel",
            found=f"{flag}={value} in {len(fewer)} of {len(instances)} components",
            at_run_time="nvlink rejects the mix; nvJitLink uses the value of its first input",
            suggestions=(f"set the same `{flag}` in `copts` of all components",),
            subject=flag,
        )


CHECKS = (check_numerical_contracts, check_flags)
