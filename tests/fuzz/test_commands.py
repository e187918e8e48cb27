"""Every command with a missing, broken or foreign file: a finding, its exit code, no traceback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import fuzz_seeds as seeds
import pytest

from pipelink_rules.cli import COMMANDS, main

sys.path.append(str(Path(__file__).parents[1] / "unit/report"))
sys.path.append(str(Path(__file__).parents[1] / "unit/launch"))

FILES = {
    "missing": None,
    "empty": b"",
    "garbage": bytes(range(256)) * 4,
    "null bytes": b"\0" * 64,
    "text": b"hello, world\n",
    "list": b"[]",
    "number": b"17",
    "deep": b"[" * 100_000,
    "truncated": seeds.findings()[0][:-40],
    "other kind": seeds.findings()[0],
    "NaN": b'{"name": NaN}',
    "keys twice": b'{"name": "a", "name": "b"}',
    "folder": "folder",
}
# command -> (the name its file has, further words)
ONE_FILE = {
    "check": [("x.program.json", ()), ("x.spec.json", ())],
    "place": [("x.program.json", ("-o", "-"))],
    "map": [("x.program.json", ())],
    "link": [("x.program.json", ("-o", "out"))],
    "inspect": [
        ("x.contract.yaml", ()),
        ("x.manifest.json", ()),
        ("x.program.json", ()),
        ("x.tar.gz", ()),
    ],
    "run": [("x.manifest.json", ())],
    "trace": [("x.trace.json", ())],
    "record": [("x.record.json", ())],
    "diff": [("x.placement.json", ("SAME",))],
}
CASES = [
    (command, name, rest, what)
    for command, forms in ONE_FILE.items()
    for name, rest in forms
    for what in FILES
]


def _ended(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(words)
    said = capsys.readouterr()
    assert "Traceback" not in said.err + said.out
    return code, said.out, said.err


@pytest.mark.parametrize(("command", "name", "rest", "what"), CASES)
def test_a_file_that_is_not_what_it_should_be(
    command: str,
    name: str,
    rest: tuple[str, ...],
    what: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path, content = tmp_path / name, FILES[what]
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    words = [command, str(path), *(str(path) if word == "SAME" else word for word in rest)]
    code, out, err = _ended(words, capsys)
    if command == "inspect" and name == "x.program.json" and code == 0:
        json.loads(out)  # any JSON is shown as it is
        return
    assert code in (1, 3), err
    assert "error[PL" in err and "PL99" not in err, err
    code, out, err = _ended(["--diag=json", *words], capsys)
    found = json.loads(out)["diagnostics"]
    assert code in (1, 3) and all(item["code"].startswith("PL") for item in found)
    assert found and not err


def test_every_command_that_reads_a_file_is_here() -> None:
    assert set(ONE_FILE) | {"doctor", "explain", "bench"} == set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["nonsense"], 2),
        (["check"], 2),
        (["check", "a", "b", "c"], 2),
        (["link", "x"], 2),
        (["link", "x", "-o", "y", "--linker", "ld"], 2),
        (["diff", "x"], 2),
        (["run", "x", "--times", "many"], 2),
        (["bench", "nothing"], 2),
        (["explain", "PL9999"], 1),
        (["explain", "../../etc/passwd"], 1),
        (["explain", "\x00"], 1),
        (["explain", "9" * 5000], 1),
        (["check", "--diag=xml", "x"], 2),
    ],
)
def test_words_that_mean_nothing(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _ended(words, capsys)[0] == code


@pytest.mark.parametrize("value", ["M=abc", "M=", "=1", "M", "M=1e9", "M=" + "9" * 5000, "alpha=x"])
def test_values_of_run_that_are_no_numbers(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import manifests

    file = manifests.saved(tmp_path)
    code, _, err = _ended(["run", str(file), value], capsys)
    assert code == 1 and "error[PL" in err and "PL99" not in err, err
