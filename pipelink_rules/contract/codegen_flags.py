"""Code-generation flags: what the user writes -> the flags that differ from the defaults."""

from collections.abc import Sequence

from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.model.source_span import Span

# Code-generation flags and their defaults (nvcc manual, 4.2.7).
FLAG_DEFAULTS = {"fmad": True, "ftz": False, "prec-div": True, "prec-sqrt": True}
FAST_MATH = {"fmad": True, "ftz": True, "prec-div": False, "prec-sqrt": False}


def normal_flags(flags: Sequence[str], place: Span | None = None) -> tuple[str, ...]:
    """Return the flags that differ from the compiler's defaults, sorted, as `ftz=true`.

    Accept `ftz`, `ftz=true`, `-ftz=true`, `--ftz=true` and `use_fast_math`; the last one wins.
    """
    chosen: dict[str, bool] = {}
    for flag in flags:
        name, _, value = flag.lstrip("-").replace("_", "-").partition("=")
        if name == "use-fast-math" and value in ("", "true"):
            chosen.update(FAST_MATH)
        elif name not in FLAG_DEFAULTS or value not in ("", "true", "false"):
            raise error(
                "PL0028",
                f"unknown code-generation flag `{flag}`",
                place,
                expected=", ".join(f"{item}=true|false" for item in FLAG_DEFAULTS),
                found=flag,
                suggestions=(
                    *similar_name_help(name, FLAG_DEFAULTS),
                    "or pass another compiler option in `copts`",
                ),
                subject=flag,
            )
        else:
            chosen[name] = value != "false"
    return tuple(
        f"{name}={'true' if value else 'false'}"
        for name, value in sorted(chosen.items())
        if value != FLAG_DEFAULTS[name]
    )
