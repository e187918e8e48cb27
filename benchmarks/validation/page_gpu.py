"""Generate the part of docs/validation.md about runs on a GPU: results -> lines.

A section that has not been run says so, with the command that runs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from benchmarks.paths import ROOT

NOT_RUN = "Not run yet: `{command}`."
TOOLS = ("memcheck", "synccheck", "racecheck")
BAD = ("hang", "fault", "race", "wrong numbers")


def gpu_lines(
    results: dict[str, Any], cases: Mapping[str, Any], megakernels: Iterable[str]
) -> list[str]:
    """Return all sections, in order.

    cases: name -> row of refused_on_gpu.yaml.  megakernels: those that have to be listed.
    """
    lines: list[str] = []
    for title, key, command, render in (
        (
            "Refused kernels on a GPU",
            "forced",
            "python -m benchmarks.validation.refused_on_gpu",
            partial(_refused, cases),
        ),
        (
            "Accepted mutants on a GPU",
            "trials",
            "python -m benchmarks.validation.accepted_mutants",
            _trials,
        ),
        (
            "Repeated launches",
            "launches",
            "python -m benchmarks.validation.instrumented_launches",
            partial(_launches, megakernels),
        ),
        (
            "Estimated and measured intervals",
            "steady",
            "python -m benchmarks.validation.interval_accuracy",
            _steady,
        ),
    ):
        lines += [f"## {title}", ""]
        section = results.get(key)
        if not section or not section.get("rows"):
            lines += [NOT_RUN.format(command=command), ""]
            continue
        lines += [*render(section), "", _ran(section), ""]
    return lines


def _ran(section: dict[str, Any]) -> str:
    """Return date, machine and command of a section."""
    return (
        f"{section['date']}, {section['card']}, driver {section['driver']}, toolkit "
        f"{section['toolkit']}; `{section['command']}`."
    )


def _refused(cases: Mapping[str, Any], section: dict[str, Any]) -> Iterator[str]:
    rows = section["rows"]
    counts = Counter(row["verdict"] for row in rows)
    bad = ", ".join(f"{counts[name]} {name}" for name in BAD if counts[name])
    yield (
        f"{len(rows)} of the invalid megakernels of `benchmarks/validation/refused_on_gpu.yaml` "
        "were linked with allowed errors. The mistake is in the machine code, or in the tensor "
        "maps and arrays that it receives. They were launched with the runtime `watchdog` "
        f"and, if that saw nothing, `jitter`: {bad}; {counts['right']} computed correct results, "
        "for the reasons given."
    )
    yield ""
    yield "| mistake | megakernel | code | on the GPU | observation |"
    yield "|---|---|---|---|---|"
    for row in rows:
        case = cases.get(row["name"], {})
        codes = ", ".join(_link(code) for code in row["codes"])
        observed = _cell(row["observed"])
        if row["verdict"] == "right":
            observed += f". {case.get('harmless') or '**No reason is written down.**'}"
        what = _cell(case.get("what", row["what"]))
        yield (f"| {what} | `{row['megakernel']}` | {codes} | {_verdict(row)} | {observed} |")


def _verdict(row: Mapping[str, Any]) -> str:
    return "correct results" if row["verdict"] == "right" else str(row["verdict"])


def verdict_of_trial(row: Mapping[str, Any]) -> str:
    """Return the verdict; `refused` if the mutant was not linked."""
    return "refused" if "problem" in row else str(row["verdict"])


def _trials(section: dict[str, Any]) -> Iterator[str]:
    rows = [{**row, "verdict": verdict_of_trial(row)} for row in section["rows"]]
    counts = Counter(row["verdict"] for row in rows)
    same = sum(bool(row.get("same")) for row in rows)
    ran = len(rows) - counts["refused"]
    yield (
        f"{ran} accepted mutants, drawn with seed {section['seed']} from those that result in "
        "another kernel of the same sources, were linked with the runtime `jitter` and launched: "
        f"the results of {counts['right']} agree with float64 in every launch, those of "
        f"{ran - counts['right']} do not. {same} have the machine code of the unchanged megakernel."
    )
    yield ""
    yield "| mutant | reason | machine code | launches | compared with float64 | bits |"
    yield "|---|---|---|--:|---|---|"
    for row in rows:
        seen = row["seen"]
        code = "the same" if row.get("same") else "different"
        bits = _bits(seen)
        agrees = row["verdict"] == "right"
        result = "agrees" if agrees else _cell(f"{row['verdict']}: {row['observed']}")
        yield (
            f"| {_cell(row['text'])} | {row['reason']} | {code} | {seen.get('launches', 0)} "
            f"| {result} | {bits} |"
        )


def _bits(seen: dict[str, Any]) -> str:
    if "other_bits" not in seen:
        return "not compared"
    count = seen["other_bits"]
    return f"{count:,} elements differ" if count else "as the unchanged megakernel"


def _launches(megakernels: Iterable[str], section: dict[str, Any]) -> Iterator[str]:
    yield (
        "Every megakernel is launched repeatedly on one input. Every bit is compared with the "
        "first launch, the last result with float64. Delays are drawn anew every 20 launches. "
        "One launch is recorded and compared with the contracts."
    )
    yield ""
    yield f"| megakernel | plain | with `jitter` | float64 | record | {' | '.join(TOOLS)} |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in section["rows"]:
        runs = [row.get(name, {}) for name in ("release", "jitter")]
        cells = [
            f"{seen['launches']:,}, {seen['differing'] or 'none'} differ" if seen else "not run"
            for seen in runs
        ]
        known = [seen["wrong"] for seen in runs if "wrong" in seen]
        cells.append(
            "not compared" if not known else f"{sum(known)} wrong" if any(known) else "agrees"
        )
        cells.append(_cell(row.get("recorded", row.get("problem", "not run"))))
        tools = row.get("sanitizer", {})
        cells += [_cell(tools.get(tool, "not run")) for tool in TOOLS]
        yield f"| `{row['megakernel']}` | {' | '.join(cells)} |"
    ran = {row["megakernel"] for row in section["rows"]}
    for name in sorted(set(megakernels) - ran):
        yield f"| `{name}` |{' not run |' * 7}"


def _steady(section: dict[str, Any]) -> Iterator[str]:
    yield (
        "The link map estimates the initiation interval of a pipeline from its operations: a lower "
        "bound, with data in the L2 cache and without the computation of components. It is "
        "compared with the kernel as it is shipped: launches in which every CTA performs N "
        "steps and 3 N steps. Rows are streamed from memory, not from the L2 cache."
    )
    yield ""
    yield "| megakernel | step | estimated | measured | measured / estimated | bottleneck |"
    yield "|---|---|--:|--:|--:|---|"
    for row in section["rows"]:
        taken, said = row.get("measured", 0), row.get("cycles", 0)
        ratio = f"{taken / said:.2f}" if taken and said else ""
        yield (
            f"| `{row['megakernel']}` | {row.get('step', '')} | {said:,.0f} | {taken:,.0f} "
            f"| {ratio} | {_cell(row.get('bound', ''))} |"
        )


def _link(code: str) -> str:
    """Link to the page of a code; failures that cannot happen by construction have none."""
    page = ROOT / "docs" / "errors" / f"{code}.md"
    return f"[{code}](errors/{code}.md)" if page.is_file() else code


def _cell(text: str) -> str:
    """Return the text in one line, with `|` escaped."""
    return " ".join(str(text).split()).replace("|", "\\|")
