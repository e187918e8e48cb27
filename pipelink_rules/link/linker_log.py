"""What did a linker say?  Text of either linker -> numbers, remarks, the reason it failed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.toolkit.process import quote
from pipelink_rules.toolkit.ptxas_log import AssemblerLog, FunctionLog, read_assembler_log
from pipelink_rules.toolkit.weak_symbols import demangle

_PARTIAL = re.compile(r"requested LTO but '([^'\n]+)' not built for LTO")
_UNDEFINED = re.compile(
    r"(?:[Uu]ndefined reference to|Unresolved extern (?:function|variable)) '([^'\n]+)'"
)
_TWICE = re.compile(
    r"globals named '([^'\n]+)': symbol multiply defined|[Mm]ultiple definition of '([^'\n]+)'"
)
_FLAG = re.compile(r"option values for '-(\w+)' do not match")
_ARCH = re.compile(r"SM Arch \('([^'\n]+)'\) not found in '([^'\n]+)'|bad input: (\S+)")
_OLD = re.compile(
    r"newer version of nvJitLink|OUTDATED_LIBRARY|elfLink nvvm error|nvvmAddNVVMContainer"
)
_LIBRARY = re.compile(r"linker library load error|-nvvmpath should be specified")


@dataclass(frozen=True)
class LinkLog:
    """A finished link."""

    backend: str  # "nvlink 13.5.37"
    command: tuple[str, ...]
    text: str
    assembler: AssemblerLog
    partial: tuple[str, ...]  # objects that were not linked as intermediate code
    seconds: float = 0.0

    def function(self, name: str) -> FunctionLog:
        """Return the numbers of the entry; zeros where the linker printed none."""
        return self.assembler.function(name) or FunctionLog(name)


def read_log(text: str, backend: str, command: tuple[str, ...], seconds: float = 0.0) -> LinkLog:
    """Return the log of a link that succeeded."""
    partial = tuple(dict.fromkeys(_PARTIAL.findall(text)))
    return LinkLog(backend, command, text, read_assembler_log(text), partial, seconds)


def link_failure(text: str, name: str, backend: str, command: tuple[str, ...]) -> Diagnostic:
    """Return why a link failed, as one finding; `name` is the megakernel."""
    notes = (f"command: {' '.join(command)}",)
    found = quote(text)
    if names := sorted(set(_UNDEFINED.findall(text))):
        return _undefined(names, name, found, notes)
    if hits := _TWICE.findall(text):
        twice = sorted({one or two for one, two in hits})
        spelled = demangle(twice)
        return Diagnostic(
            "PL1211",
            f"{', '.join(f'`{spelled[item]}`' for item in twice)} is defined in two objects"
            f" of `{name}`",
            expected="one definition of each external symbol",
            found=found,
            notes=notes,
            suggestions=(
                "make it static, or put it into namespace PL_COMPONENT",
                "two targets with one contract and different sources cannot be linked together",
            ),
            subject=name,
        )
    if hit := _FLAG.search(text):
        flag = hit[1].replace("_", "-")
        return Diagnostic(
            "PL1208",
            f"the objects of `{name}` were compiled with different values of -{flag}",
            expected=f"one value of -{flag} in all objects",
            found=found,
            notes=notes,
            suggestions=("give every component the same code-generation flags in copts=",),
            subject=name,
        )
    if hit := _ARCH.search(text):
        what = f"`{hit[2] or hit[3]}`"
        return Diagnostic(
            "PL1207",
            f"{what} has no code for the target of `{name}`",
            expected=hit[1] or "an image for the target",
            found=found,
            notes=notes,
            suggestions=("build the component for this architecture (archs=)",),
            subject=name,
        )
    if _OLD.search(text):
        return Diagnostic(
            "PL1202",
            f"{backend} is older than an object of `{name}`",
            expected="a linker at least as new as the compiler of every object",
            found=found,
            notes=notes,
            suggestions=("link with the toolkit that compiled the newest object",),
            subject=name,
        )
    if _LIBRARY.search(text):
        return Diagnostic(
            "PL1204",
            f"{backend} could not load libnvvm",
            found=found,
            notes=notes,
            suggestions=("`pipelink doctor` checks the toolkit",),
            subject=name,
        )
    if "C7602" in text:
        return _too_few(text, name, found, notes)
    return Diagnostic("PL1209", f"`{name}` does not link", found=found, notes=notes, subject=name)


def _undefined(names: list[str], name: str, found: str, notes: tuple[str, ...]) -> Diagnostic:
    entry = [item for item in names if re.fullmatch(r"pl_\w+_[0-9a-f]{12}", item)]
    suggestions = (
        "the name of an entry carries the digest of contract, parameters and flags: an object was"
        " built from another version; build it again"
        if entry
        else "operations come from the device runtime: is it of this version?",
    )
    return Diagnostic(
        "PL1210",
        f"{', '.join(f'`{item}`' for item in names)} is not defined in any object of `{name}`",
        expected="a definition in one of the linked objects",
        found=found,
        notes=notes,
        suggestions=suggestions,
        subject=name,
    )


def _too_few(text: str, name: str, found: str, notes: tuple[str, ...]) -> Diagnostic:
    floor = read_assembler_log(text).register_floor
    return Diagnostic(
        "PL0927",
        f"`{name}` starts with fewer registers than its wgmma needs",
        expected=f"{floor} registers at kernel entry" if floor else "more registers at entry",
        found=found,
        notes=notes,
        suggestions=("fewer threads, or a narrower accumulator tile",),
        subject=name,
    )
