"""What may follow `scons` on the command line?  `arch=`, `runtime=`, `twins=`, `linker=`, ..."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.diagnostics.wording import nearest, similar_name_help
from pipelink_rules.model.program import RUNTIMES
from pipelink_rules.model.target import TARGETS

_YES = {"1", "yes", "true", "on"}
_NO = {"0", "no", "false", "off"}
CACHE = ".cache"  # inside the build directory

# name -> (values, what it does); also the text of `scons -h`.
HELP: dict[str, tuple[str, str]] = {
    "arch": (
        "sm_90a[,sm_100a]",
        "build for these targets only (default: all a megakernel declares)",
    ),
    "runtime": (
        "|".join(RUNTIMES),
        "link this build of the device runtime (default: as declared)",
    ),
    "linker": ("nvlink|nvjitlink", "the link backend (default: nvlink)"),
    "twins": ("0|1", "also build the LTO and native twins and compare (default: 0)"),
    "cache": ("PATH|0", f"where finished files are kept (default: build/{CACHE}; 0: nowhere)"),
    "diag": (
        "text|json|sarif",
        "also write all findings to build/findings.json or .sarif (default: text only)",
    ),
    "strict": ("0|1", "warnings and unaudited roles are errors (default: 0)"),
    "wait": ("0|1", "wait for another build of this directory (default: 1)"),
}


@dataclass(frozen=True)
class Options:
    """The command line, checked."""

    archs: tuple[str, ...] = ()  # () = every declared target
    runtime: str = ""  # "" = as declared
    linker: str = "nvlink"
    twins: bool = False
    cache: str | None = ""  # "" = the build directory's own; None = no cache
    wait: bool = True
    diag: str = "text"
    strict: bool = False


def read_options(arguments: Mapping[str, str]) -> Options:
    """The options among `NAME=value` arguments; raises PL1312 with all findings at once.

    Arguments of other tools pass; one that is nearly one of ours does not.
    """
    findings: list[Diagnostic] = []
    for name in arguments:
        if name not in HELP and nearest(name, HELP):
            findings.append(
                Diagnostic(
                    "PL1312",
                    f"`{name}=` is no option",
                    suggestions=similar_name_help(name, HELP),
                    subject=name,
                )
            )

    def choice(name: str, values: tuple[str, ...], default: str) -> str:
        value = arguments.get(name, default)
        if value != default and value not in values:
            findings.append(_wrong(name, value, values))
        return value

    def flag(name: str, default: bool) -> bool:
        value = str(arguments.get(name, "1" if default else "0")).lower()
        if value not in _YES | _NO:
            findings.append(_wrong(name, value, ("0", "1")))
        return value in _YES

    archs = tuple(dict.fromkeys(a for a in arguments.get("arch", "").split(",") if a))
    findings += [_wrong("arch", arch, tuple(TARGETS)) for arch in archs if arch not in TARGETS]
    cache = arguments.get("cache", "")
    options = Options(
        archs=archs,
        runtime=choice("runtime", RUNTIMES, ""),
        linker=choice("linker", ("nvlink", "nvjitlink"), "nvlink"),
        twins=flag("twins", False),
        cache=None if cache.lower() in _NO else cache,
        wait=flag("wait", True),
        diag=choice("diag", ("text", "json", "sarif"), "text"),
        strict=flag("strict", False),
    )
    if findings:
        raise PipelinkError(findings)
    return options


def _wrong(name: str, value: str, values: tuple[str, ...]) -> Diagnostic:
    return Diagnostic(
        "PL1312",
        f"`{name}={value}` is not possible",
        expected=" or ".join(values),
        found=value,
        suggestions=similar_name_help(value, values),
        subject=f"{name} {value}",
    )


def help_text(megakernels: Mapping[str, str]) -> str:
    """The text of `scons -h`.  megakernels: name -> summary."""
    lines = ["", "scons [OPTION=value ...] [TARGET ...]", "", "Options:"]
    lines += [f"  {name + '=' + values:<26}  {text}" for name, (values, text) in HELP.items()]
    lines += ["", "Targets:", f"  {'(none)':<26}  every megakernel, then a table of the results"]
    lines += [
        f"  {'megakernels/' + name:<26}  {summary}" for name, summary in sorted(megakernels.items())
    ]
    lines += [f"  {'//package:name':<26}  the variants of one component that are asked for", ""]
    return "\n".join(lines)
