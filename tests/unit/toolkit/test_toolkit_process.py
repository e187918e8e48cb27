"""Tools run in a minimal environment, without a shell, and end when their time is up."""

from __future__ import annotations

import sys
import time

from pipelink_rules.toolkit.process import run_tool
from pipelink_rules.toolkit.toolkit import minimal_environment, version_tuple


def test_nothing_of_the_callers_environment_reaches_a_tool(monkeypatch) -> None:
    for name in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "CPATH", "CUDA_HOME", "LD_PRELOAD"):
        monkeypatch.setenv(name, "-G")
    environment = minimal_environment(("/cuda/bin",), {"TMPDIR": "/scratch", "HOME": "/me"})
    assert environment == {"PATH": "/cuda/bin:/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": "/scratch"}
    output = run_tool([sys.executable, "-c", "import os; print(sorted(os.environ))"], environment)
    assert output.ok
    assert "NVCC_APPEND_FLAGS" not in output.text and "CUDA_HOME" not in output.text


def test_output_is_stdout_then_stderr_and_the_status_is_kept() -> None:
    program = "import sys; print('later', file=sys.stderr); print('first'); sys.exit(3)"
    output = run_tool([sys.executable, "-c", program], {})
    assert (output.code, output.text, output.ok) == (3, "first\nlater", False)


def test_a_tool_that_is_not_there_is_an_answer() -> None:
    output = run_tool(["/nowhere/nvcc"], {})
    assert output.code == 127
    assert output.text.startswith("/nowhere/nvcc: ")


def test_arguments_are_not_read_by_a_shell() -> None:
    program = "import sys; print(sys.argv[1])"
    assert run_tool([sys.executable, "-c", program, "$(echo x); rm"], {}).text == "$(echo x); rm"


def test_time_is_up_for_the_tool_and_for_what_it_started() -> None:
    child = "import time; time.sleep(60)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    start = time.monotonic()
    output = run_tool([sys.executable, "-c", program], {}, timeout=0.5)
    assert output.timed_out and not output.ok
    assert time.monotonic() - start < 20  # the pipes close, so the grandchild has ended too


def test_versions_compare_as_numbers() -> None:
    assert version_tuple("13.10.1") > version_tuple("13.5.37")
    assert version_tuple("unknown") == (0,)
