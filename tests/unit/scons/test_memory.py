"""How much runs at once."""

from __future__ import annotations

import threading

from pipelink_rules.scons.session import GIB, Budget, jobs, memory_bytes


def test_jobs_fit_processors_and_memory() -> None:
    assert jobs(64, 16 * GIB) == 16
    assert jobs(4, 256 * GIB) == 4
    assert jobs(2, GIB // 2) == 1


def test_this_machine_has_memory() -> None:
    assert memory_bytes() > 64 << 20


def test_a_step_larger_than_memory_runs_alone() -> None:
    budget = Budget(10)
    with budget.reserve(1000), budget.reserve(0):
        inside = threading.Event()

        def small() -> None:
            with budget.reserve(1):
                inside.set()

        thread = threading.Thread(target=small)
        thread.start()
        assert not inside.wait(0.05)
    thread.join(5)
    assert inside.is_set()
