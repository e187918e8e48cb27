"""The command-line options of `scons`: `arch=`, `runtime=`, `twins=`, `linker=`, ..."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelink_rules.diagnostics.diagnostic import DiagnosticSink
from pipelink_rules.diagnostics.wording import nearest, similar_name_help
from pipelink_rules.model.program import RUNTIMES
from pipelink_rules.model.target import TARGETS

_YES = {"1", "yes", "true", "on"}
_NO = {"0", "no", "false", "off"}
CACHE = ".cache"  # inside the build directory

# name -> (values, effect); also the text of `scons -h`.
HELP: dict[str, tuple[str, str]] = {
    "arch": ("sm_90a[,sm_100a]", "build only these targets (default: all declared)"),
    "runtime": ("|".join(RUNTIMES), "link this device runtime (default: as declared)"),
    "linker": ("nvlink|nvjitlink", "linker backend (default: nvlink)"),
    "twins": ("0|1", "also build the single-source twins and compare machine code (default: 0)"),
    "cache": ("PATH|0", f"object cache directory (default: build/{CACHE}; 0 disables it)"),
    "diag": (
        "text|json|sarif",
        "also write diagnostics to build/diagnostics.json or .sarif (default: text)",
    ),
    "strict": ("0|1", "treat warnings and inconclusive audits as errors (default: 0)"),
    "wait": ("0|1", "wait for another build in this directory to finish (default: 1)"),
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
    """Return the options among `NAME=value` arguments; raise every PL1312.

    Unknown names are left to other tools, unless they resemble an option.
    """
    sink = DiagnosticSink()
    for name in arguments:
        if name not in HELP and nearest(name, HELP):
            known = similar_name_help(name, HELP)
            sink.add("PL1312", f"unknown option `{name}`", suggestions=known, subject=name)

    def require(name: str, value: str, values: Sequence[str]) -> None:
        if value not in values:
            near = nearest(value, values)
            sink.add(
                "PL1312",
                f"invalid value `{value}` for option `{name}`",
                expected=f"one of {', '.join(values)}",
                found=value,
                suggestions=(f"use `{name}={near}`",) if near else (),
                subject=f"{name} {value}",
            )

    def choice(name: str, values: tuple[str, ...], default: str) -> str:
        value = arguments.get(name, default)
        if value != default:
            require(name, value, values)
        return value

    def flag(name: str, default: bool) -> bool:
        value = str(arguments.get(name, "1" if default else "0")).lower()
        if value not in _YES | _NO:
            require(name, value, ("0", "1"))
        return value in _YES

    archs = tuple(dict.fromkeys(a for a in arguments.get("arch", "").split(",") if a))
    for arch in archs:
        require("arch", arch, tuple(TARGETS))
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
    sink.raise_if_any()
    return options


def help_text(megakernels: Mapping[str, str]) -> str:
    """Return the text of `scons -h`.  megakernels: name -> summary."""
    lines = ["", "scons [OPTION=value ...] [TARGET ...]", "", "Options:"]
    lines += [f"  {name + '=' + values:<26}  {text}" for name, (values, text) in HELP.items()]
    lines += ["", "Targets:", f"  {'(none)':<26}  build every megakernel and print a summary"]
    lines += [
        f"  {'megakernels/' + name:<26}  {summary}" for name, summary in sorted(megakernels.items())
    ]
    variants = "build the variants of one component that are in use"
    lines += [f"  {'//PACKAGE:NAME':<26}  {variants}", ""]
    return "\n".join(lines)
