"""Time launches on a GPU: interleaved pairs, rotating inputs, medians."""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Launch = Callable[[int], object]  # number of an input set -> one launch on the current stream


BATCH = 40  # pairs queued at a time; a queue holds about a thousand entries
HELD_CYCLES = 10_000_000  # about 5 ms: longer than the host takes to queue a batch


def hold() -> None:
    """Keep the GPU busy while launches are queued; otherwise host time is part of a short one."""
    import torch

    torch.cuda._sleep(HELD_CYCLES)


@dataclass(frozen=True)
class Pairs:
    """A and B launched A B A B ...; times in microseconds."""

    pairs: int
    sets: int  # input sets that are rotated
    a_us: float  # medians
    b_us: float
    ratio: float  # median over pairs of time(A) / time(B)
    ratio_low: float  # quartiles of that ratio
    ratio_high: float

    def as_dict(self) -> dict[str, Any]:
        """Return a row of the results file."""
        return asdict(self)


def pairs(a: Launch, b: Launch, sets: int, count: int, warm_up: int = 10) -> Pairs:
    """Time `count` pairs; consecutive launches use different input sets.

    One event pair per launch, queued while the GPU is held: it never waits for the host between
    two events, and the clock, the power limit and the temperature are the same for A and B.
    """
    import torch

    turn = itertools.count()

    def timed(launch: Launch) -> tuple[Any, Any]:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        launch(next(turn) % sets)
        end.record()
        return start, end

    for _ in range(warm_up):
        a(next(turn) % sets)
        b(next(turn) % sets)
    events = []
    for place in range(count):
        if place % BATCH == 0:
            hold()
        events.append((timed(a), timed(b)))
    torch.cuda.synchronize()
    times = [tuple(1000 * start.elapsed_time(end) for start, end in pair) for pair in events]
    ratios = sorted(first / second for first, second in times)
    return Pairs(
        count,
        sets,
        statistics.median(first for first, _ in times),
        statistics.median(second for _, second in times),
        statistics.median(ratios),
        ratios[len(ratios) // 4],
        ratios[3 * len(ratios) // 4],
    )


def sets_for(bytes_per_set: int, minimum: int = 2) -> int:
    """Return how many input sets to rotate, so that a set has left the L2 cache when reused."""
    import torch

    cache = torch.cuda.get_device_properties(0).L2_cache_size
    return max(minimum, -(-3 * cache // max(1, bytes_per_set)))


def call_overhead(call: Callable[[], object], calls: int = 2000) -> float:
    """Return the host time of a call in microseconds: best of ten batches, with an empty queue."""
    import time

    import torch

    best = float("inf")
    for _ in range(10):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls // 10):
            call()
        best = min(best, (time.perf_counter() - start) / (calls // 10))
    return best * 1e6


def machine(command: Sequence[str]) -> dict[str, Any]:
    """Return date, card, driver and toolkit of a run."""
    import datetime
    import platform

    import torch

    from pipelink_rules import __version__
    from pipelink_rules.launch.driver import Driver

    driver = int(Driver().call("cuDriverGetVersion"))
    properties = torch.cuda.get_device_properties(0)
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "card": properties.name,
        "sms": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "driver_cuda": f"{driver // 1000}.{driver % 1000 // 10}",
        "driver": _driver_version(),
        "torch": torch.__version__,
        "cublas": str(torch.version.cuda),
        "python": platform.python_version(),
        "pipelink": __version__,
        "command": " ".join(without_output(command)),
    }


def without_output(command: Sequence[str]) -> list[str]:
    """Return the command without `--out FILE`, which does not affect the numbers."""
    words = list(command)
    while "--out" in words:
        at = words.index("--out")
        del words[at : at + 2]
    return words


def _driver_version() -> str:
    path = Path("/proc/driver/nvidia/version")
    if not path.is_file():
        return ""
    words = path.read_text().split()
    return next((word for word in words if word[0].isdigit() and word.count(".") >= 1), "")


def toolkit_of(build: Path) -> str:
    """Return the compiler version in the sidecars of a build."""
    for sidecar in sorted(build.glob("*/variants/*/*.contract.yaml")):
        for line in sidecar.read_text(encoding="utf-8").splitlines():
            if line.strip().startswith("toolkit:"):
                return line.partition(":")[2].strip().strip("'\"")
    return ""


@contextmanager
def deadline(what: str, seconds: float = 60) -> Iterator[None]:
    """End the process if the body takes longer: a kernel that hangs keeps the GPU forever."""

    def end() -> None:
        note(f"{what} did not finish in {seconds:g} s: it hangs; the run ends here")
        os._exit(3)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def note(text: str) -> None:
    """Print progress to stderr; stdout is for the table."""
    print(text, file=sys.stderr, flush=True)
