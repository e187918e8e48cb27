"""Compiler options of a component: copts -> code-generation flags and harmless options."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from pipelink_rules.contract.codegen_flags import FAST_MATH, FLAG_DEFAULTS
from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.model.source_span import Span

# Options without effect on what a component computes or on where it may be linked.
_HARMLESS = (
    r"-std=c\+\+(17|20)",
    r"--expt-(extended-lambda|relaxed-constexpr)|-expt-(extended-lambda|relaxed-constexpr)",
    r"--extended-lambda|-extended-lambda",
    r"(-diag-suppress|--diag-suppress|-diag-warn|--diag-warn|-diag-error|--diag-error)=[\w,-]+",
    r"-Wno-deprecated-gpu-targets|-Wno-deprecated-declarations|--Wno-deprecated-declarations",
    r"-Wreorder|--Wreorder|-Wext-lambda-captures-this|-Wconversion|--Wconversion",
    r"-Werror=[\w-]+(,[\w-]+)*|-Xcudafe=[\w=,-]+",
    r"-restrict|--restrict",
)

_REASONS: tuple[tuple[str, str, str], ...] = (
    (r"-G$|--device-debug$", "link-time optimization excludes device debugging", ""),
    (
        r"-Xptxas|--ptxas-options|-maxrregcount|--maxrregcount|-Xnvlink|--nvlink-options",
        "ptxas runs when the megakernel is linked, not when a component is compiled",
        "remove it: the linker assigns the registers of every role",
    ),
    (
        r"-arch|--gpu-architecture|-gencode|--generate-code|-code|--gpu-code",
        "archs= lists the architectures, with one object for each",
        "use archs=",
    ),
    (
        r"-dlto|-lto|-rdc|--relocatable-device-code|-dc$|--device-c|-ptx|-cubin|-fatbin|--fatbin",
        "the build rule selects the compiler's output",
        "remove it",
    ),
    (r"-I|--include-path", "include folders are inputs of the build", "use includes="),
    (r"-D|--define-macro", "definitions are inputs of the build", "use defines= or local_defines="),
    (r"-O\d|--optimize", "every component is compiled with -O3", "remove it"),
    (
        r"-lineinfo|--generate-line-info",
        "line information contains absolute paths, so objects would depend on the build folder",
        "remove it",
    ),
)


@dataclass(frozen=True)
class Options:
    """Classified compiler options."""

    flags: tuple[str, ...]  # code-generation flags that differ from the default: "ftz=true", sorted
    other: tuple[str, ...]  # harmless options, in the order given


def classify_options(copts: Iterable[str], span: Span | None = None) -> Options:
    """Separate code-generation flags from harmless options; raise PL1215 for any other option."""
    explicit: dict[str, bool] = {}
    fast = False
    other: list[str] = []
    for option in copts:
        flag = re.fullmatch(r"--?(fmad|ftz|prec-div|prec-sqrt)=(true|false)", option)
        if option in ("--use_fast_math", "-use_fast_math"):
            fast = True
        elif flag:
            explicit[flag[1]] = flag[2] == "true"
        elif any(re.fullmatch(pattern, option) for pattern in _HARMLESS):
            other.append(option)
        else:
            raise _refused(option, span)
    values = {**FLAG_DEFAULTS, **(FAST_MATH if fast else {}), **explicit}
    changed = [
        f"{name}={str(value).lower()}"
        for name, value in sorted(values.items())
        if value != FLAG_DEFAULTS[name]
    ]
    return Options(tuple(changed), tuple(other))


def _refused(option: str, span: Span | None) -> Exception:
    reasons = [(reason, fix) for pattern, reason, fix in _REASONS if re.match(pattern, option)]
    if reasons:
        message = f"option {option} is not allowed in copts= of a component"
        expected = "an option that does not change how the component is linked"
        found, fix = reasons[0]
    else:
        message, found = f"unsupported option {option} in copts= of a component", option
        expected = (
            "--ftz=, --prec-div=, --prec-sqrt= or --fmad= with true or false, "
            "--use_fast_math, a C++ dialect, or a diagnostics option"
        )
        known = [f"--{name}=true" for name in FLAG_DEFAULTS] + ["--use_fast_math"]
        near = difflib.get_close_matches(option.replace("-", "", 1), known, 1)
        fix = f"an option with a similar name exists: {near[0]}" if near else ""
    fixes = (fix,) if fix else ()
    return error(
        "PL1215", message, span, expected=expected, found=found, suggestions=fixes, subject=option
    )
