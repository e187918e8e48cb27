"""Launch a link that may be wrong again and again, and compare with float64.

`tried` runs in a separate process; `verdict_of` summarizes its observations in one word.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure.correctness import RELATIVE

WATCHDOG_CYCLES = 400_000_000  # about 0.2 s
USUAL = {"M": 4000, "N": 4096, "K": 1024, "R": 20000}  # several work tiles for every CTA
CYCLES = (256, 2048, 16384)  # longest usual delays with `jitter`, in turn
LAUNCHES_OF_A_SEED = 5


def usual_sizes(manifest: Any, given: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of a trial that the contracts allow; long rows are fewer."""
    from benchmarks.measure.benchmark_kernels import sizes_of, widths

    rows = USUAL["R"] * 4096 // max([4096, *widths(manifest).values()])
    return sizes_of(manifest, {**USUAL, "R": rows, **given})


def tried(
    path: Path, name: str, sizes: Mapping[str, int], launches: int, other: Path | None = None
) -> dict[str, Any]:
    """Launch, and compare each result with float64 and with the first.

    other: another link whose result should have the same bits.  A failed launch ends the run."""
    import torch

    from benchmarks.measure.benchmark_kernels import make_inputs, make_outputs, widths
    from benchmarks.measure.references import reference_of
    from pipelink_rules.launch import LaunchError, WatchdogError, load

    torch.cuda.init()
    kernel = load(path, watchdog_cycles=WATCHDOG_CYCLES)
    manifest = kernel.manifest
    reference = reference_of(name, widths(manifest))
    if reference is None:
        return {"problem": f"benchmarks/measure/references.py does not know {name}"}
    chosen = usual_sizes(manifest, sizes)
    inputs = make_inputs(manifest, chosen, reference.scalars, seed=5)
    (output,) = make_outputs(manifest, chosen).values()
    wide = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
    exact = reference.compute(wide)
    allowed = RELATIVE * exact.abs() + reference.absolute
    seen: dict[str, Any] = {"runtime": manifest.runtime, "sizes": chosen, "launches": 0}
    seen |= {"wrong_launches": 0, "unequal_launches": 0, "most_wrong": 0}
    seen["elements"] = exact.numel()
    arrays = {**inputs, output.name: output.array}
    bits = bits_of(output.array)
    before = _bits_of_another(other, arrays, bits) if other else None
    first = None
    try:
        for number in range(launches):
            if manifest.runtime == "jitter" and number % LAUNCHES_OF_A_SEED == 0:
                turn = number // LAUNCHES_OF_A_SEED
                kernel.seed(turn, cycles=CYCLES[turn % len(CYCLES)])
            output.poison()
            kernel(**arrays)
            kernel.synchronize()
            seen["launches"] += 1
            found = output.array.double()
            wrong = int(((found - exact).abs().nan_to_num(1e9) > allowed).sum())
            if first is None:
                first = bits.clone()
                if before is not None:
                    seen["other_bits"] = int((first != before).sum())
            seen["wrong_launches"] += bool(wrong)
            seen["unequal_launches"] += not torch.equal(bits, first)
            seen["most_wrong"] = max(seen["most_wrong"], wrong)
        seen["outside"] = not output.guards_intact()
    except WatchdogError as hung:
        item = hung.diagnostics[0]
        seen["hang"] = item.message
        seen["waits_for"] = item.expected
    except LaunchError as failed:
        item = failed.diagnostics[0]
        seen["fault"] = f"{item.message}: {item.found}" if item.found else item.message
    return seen


def bits_of(array: Any) -> Any:
    """Return the memory as integers, to compare bits instead of numbers."""
    import torch

    return array.view({2: torch.int16, 4: torch.int32}[array.element_size()])


def _bits_of_another(path: Path, arrays: Mapping[str, Any], bits: Any) -> Any:
    """Return what another link computes for these arrays; None if it has other arguments."""
    from pipelink_rules.launch import LaunchError, load

    kernel = load(path)
    try:
        kernel(**arrays)
        kernel.synchronize()
    except LaunchError:
        return None
    return bits.clone()


def verdict_of(seen: Mapping[str, Any]) -> str:
    """Return `hang`, `fault`, `race`, `wrong numbers` or `right`; `not run` if nothing is known."""
    if "hang" in seen or seen.get("late"):
        return "hang"
    if "fault" in seen:
        return "fault"
    if "problem" in seen or not seen.get("launches"):
        return "not run"
    if seen["unequal_launches"] or 0 < seen["wrong_launches"] < seen["launches"]:
        return "race"
    if seen["wrong_launches"] or seen.get("outside"):
        return "wrong numbers"
    if " findings" in seen.get("racecheck", ""):
        return "race"
    return "right"


def observation(seen: Mapping[str, Any]) -> str:
    """Return the observations in one line."""
    runtime, count = seen.get("runtime", "?"), seen.get("launches", 0)
    after = f" after {count} launches" if count else " in the first launch"
    if "hang" in seen:
        return f"{seen['hang']}{after} ({runtime})"
    if seen.get("late"):
        return f"the process did not come back: {seen['problem']}"
    if "fault" in seen:
        return f"{seen['fault']}{after} ({runtime})"
    if "problem" in seen:
        return str(seen["problem"])
    parts = []
    if seen["wrong_launches"]:
        share = seen["most_wrong"] / seen["elements"]
        parts.append(
            f"{seen['wrong_launches']} of {count} launches wrong, up to {seen['most_wrong']:,} "
            f"elements ({share:.2%})"
        )
    if seen["unequal_launches"]:
        parts.append(f"{seen['unequal_launches']} of {count} differ from the first")
    if seen.get("outside"):
        parts.append("written outside of the result")
    if "racecheck" in seen:
        parts += [f"{count} launches right and equal", f"racecheck: {seen['racecheck']}"]
    return f"{'; '.join(parts) or f'{count} launches right and equal'} ({runtime})"
