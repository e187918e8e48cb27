"""Output of either linker: text -> register numbers, remarks, and the reason of a failure."""

import re
from dataclasses import dataclass

from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.diagnostics.wording import list_of
from pipelink_rules.model.variant import RoleVerdict
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
    """A successful link."""

    backend: str  # "nvlink 13.5.37"
    command: tuple[str, ...]
    text: str
    assembler: AssemblerLog
    partial: tuple[str, ...]  # objects linked as machine code
    seconds: float = 0.0
    verdicts: tuple[RoleVerdict, ...] = ()  # of the audits of the linked objects

    def function(self, name: str) -> FunctionLog:
        """Return the numbers of a function; zeros if the linker printed none."""
        return self.assembler.function(name) or FunctionLog(name)


def read_log(text: str, backend: str, command: tuple[str, ...], seconds: float = 0.0) -> LinkLog:
    """Return the log of a successful link."""
    partial = tuple(dict.fromkeys(_PARTIAL.findall(text)))
    return LinkLog(backend, command, text, read_assembler_log(text), partial, seconds)


def link_failure(text: str, name: str, backend: str, command: tuple[str, ...]) -> Diagnostic:
    """Return the reason of a failed link; `name` is the megakernel."""
    code, message, expected, *suggestions = _reason(text, name, backend)
    return Diagnostic(
        code,
        message,
        expected=expected,
        found=quote(text),
        notes=(f"command: {' '.join(command)}",),
        suggestions=tuple(suggestions),
        subject=name,
    )


def _reason(text: str, name: str, backend: str) -> tuple[str, ...]:
    """Return code, message, the expected state and suggestions."""
    if names := sorted(set(_UNDEFINED.findall(text))):
        suggestion = "link the device runtime of this version, which defines the operations"
        if any(re.fullmatch(r"pl_\w+_[0-9a-f]{12}", item) for item in names):
            suggestion = "rebuild the object: the digest in the name of its entry is of another "
            suggestion += "version of contract, parameters or flags"
        message = f"{list_of(names)} is not defined in any object of `{name}`"
        return "PL1210", message, "a definition in one of the linked objects", suggestion
    if hits := _TWICE.findall(text):
        twice = sorted({one or two for one, two in hits})
        spelled = demangle(twice)
        return (
            "PL1211",
            f"{list_of(spelled[item] for item in twice)} is defined in two objects of `{name}`",
            "one definition of each external symbol",
            "make it static, or put it into namespace PL_COMPONENT",
            "or link one of two targets that have the same contract and different sources",
        )
    if hit := _FLAG.search(text):
        flag = hit[1].replace("_", "-")
        return (
            "PL1208",
            f"the objects of `{name}` were compiled with different values of -{flag}",
            f"one value of -{flag} in all objects",
            f"set the same -{flag}= in copts= of every component",
        )
    if hit := _ARCH.search(text):
        return (
            "PL1207",
            f"`{hit[2] or hit[3]}` has no code for the target of `{name}`",
            hit[1] or "an image for the target",
            "build the component for this architecture (archs=)",
        )
    if _OLD.search(text):
        return (
            "PL1202",
            f"{backend} is older than the compiler of an object of `{name}`",
            "a linker at least as new as the compiler of every object",
            "link with the toolkit that compiled the newest object",
        )
    if _LIBRARY.search(text):
        return "PL1204", f"{backend} cannot load libnvvm", "", "run `pipelink doctor`"
    if "C7602" in text:
        floor = read_assembler_log(text).register_floor
        return (
            "PL0927",
            f"`{name}` starts with fewer registers than its wgmma needs",
            f"{floor} registers at kernel entry" if floor else "more registers at kernel entry",
            "use fewer threads, or a narrower accumulator tile",
        )
    return "PL1209", f"the link of `{name}` failed", ""
