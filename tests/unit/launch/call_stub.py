"""Run in a process of its own: launches through the real bindings; prints microseconds a call."""

from __future__ import annotations

import sys
import time

from test_launch_call import arguments

from pipelink_rules.launch import load


def main(path: str, calls: int) -> None:
    kernel = load(path)
    given = arguments()
    kernel(**given, stream=7)
    best = float("inf")
    for _ in range(10 if calls else 0):
        start = time.perf_counter()
        for _ in range(calls):
            kernel(**given, stream=7)
        best = min(best, (time.perf_counter() - start) / calls)
    kernel.synchronize()
    print(best * 1e6)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
