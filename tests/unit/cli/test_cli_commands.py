"""Every command: entered from the file of the stage before, findings and exit codes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import manifests
import pytest
from samples import AUDIT, PLACEMENT, PROGRAM

from pipelink_rules.cli import COMMANDS, main
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import ConnectionSpec, InstanceSpec, MegakernelSpec

ROOT = Path(__file__).parents[3]


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A build folder with the stage files of the sample."""
    write_json(tmp_path / "sample.program.json", PROGRAM)
    write_json(tmp_path / "sample.placement.json", PLACEMENT)
    write_json(tmp_path / "sample.audit.json", AUDIT)
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert COMMANDS[name].split(":")[0][1:] in " ".join(capsys.readouterr().out.split())


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    assert main(["chekc"]) == 2
    assert main(["map"]) == 2
    assert main(["--version"]) == 0


@pytest.mark.parametrize(
    ("words", "root"),
    [
        (["--root", "link", "check", "{}"], "link"),
        (["--root=link", "check", "{}"], "link"),
        (["check", "--root", "map", "{}"], "map"),
        (["check", "{}", "--root", "map"], "map"),
        (["--root", "link", "check", "{}", "--root", "map"], "map"),
        (["--diag", "json", "check", "{}"], None),
        (["check", "--arch", "run", "{}"], None),
    ],
)
def test_the_command_is_the_first_positional_word(
    words: list[str], root: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option's value may have the name of a command, and a file of the command's, too."""
    seen: dict[str, object] = {}

    def run(arguments: argparse.Namespace) -> int:
        seen.update(vars(arguments))
        return 0

    monkeypatch.setattr("pipelink_rules.cli.stages.run_check", run)
    for name in ("a.spec.json", "link"):
        assert main([word.replace("{}", name) for word in words]) == 0
        assert (seen["command"], seen["file"], seen["root"]) == ("check", name, root)
        assert seen["diag"] == ("json" if "json" in words else "text")


def test_an_unknown_option_is_an_error_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["map", "folder", "--rot", "x"]) == 2
    text = capsys.readouterr().err
    assert text.startswith("usage: pipelink map") and "unrecognized arguments: --rot x" in text


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "1405"]) == 0
    assert capsys.readouterr().out.startswith("# PL1405 array-shape\n")
    assert main(["explain"]) == 0
    assert "PL14xx  launch" in capsys.readouterr().out
    assert main(["explain", "PL7777"]) == 1
    assert "unknown code `PL7777`" in capsys.readouterr().err


def test_map(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["map", str(built)]) == 0
    text = capsys.readouterr().out
    assert text == (ROOT / "tests/unit/report/sample.map.txt").read_text()
    (built / "sample.audit.json").unlink()
    assert main(["map", str(built / "sample.program.json")]) == 0
    assert "Shared memory" in (text := capsys.readouterr().out) and "Code" not in text


def test_place(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = built / "new" / "sample.placement.json"
    assert main(["place", str(built / "sample.program.json"), "-o", str(out)]) == 0
    assert "proved best" in capsys.readouterr().out
    assert main(["place", str(built), "-o", "-", "--keep", str(out)]) == 0
    placed = read_json(out, Placement)
    assert json.loads(capsys.readouterr().out)["offsets"] == [list(x) for x in placed.offsets]


def test_diff(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(built), str(built)]) == 0
    assert "no difference" in capsys.readouterr().out


def test_files_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("check", "place", "map", "inspect", "run"):
        assert main([command, str(tmp_path / "x.program.json")]) != 0
        assert "PL0010" in capsys.readouterr().err
    assert main(["map", str(tmp_path)]) != 0
    assert "not the folder of one built megakernel" in capsys.readouterr().err


def test_damaged_files(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (built / "sample.program.json").write_text('{"name": 1}')
    assert main(["place", str(built)]) != 0
    assert "PL0011" in capsys.readouterr().err


def _check_with(monkeypatch: pytest.MonkeyPatch, *findings: Diagnostic) -> None:
    module = SimpleNamespace(check=lambda program, target: findings)
    monkeypatch.setitem(sys.modules, "pipelink_rules.check.check", module)


def test_check_without_findings(
    built: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _check_with(monkeypatch)
    assert main(["check", str(built / "sample.program.json")]) == 0
    assert capsys.readouterr().out == (
        "sample for sm_90a: no errors or warnings (4 instances, 2 connections, 2 rings)\n"
    )


def test_check_with_findings(
    built: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _check_with(monkeypatch, Diagnostic("PL0046", "a finding"))
    file = str(built / "sample.program.json")
    assert main(["check", file]) == 3
    assert "error[PL0046]: a finding" in capsys.readouterr().err
    assert main(["check", "--diag=json", file]) == 3
    assert main(["--diag", "json", "check", file]) == 3
    assert main(["check", "--diag=sarif", file]) == 3
    first, second, third = capsys.readouterr().out.split("}\n{")
    assert json.loads("{" + third)["runs"][0]["results"][0]["ruleId"] == "PL0046"
    assert json.loads(first + "}")["diagnostics"][0]["code"] == "PL0046"
    assert second


def gemm_spec() -> MegakernelSpec:
    tile = (("TK", 64), ("TM", 128), ("TN", 256))
    return MegakernelSpec(
        "gemm",
        (
            InstanceSpec("tiles", "//components/scheduler:persistent_tiles"),
            InstanceSpec("load", "//components/gemm:tma_load_ab", tile),
            InstanceSpec("mma", "//components/gemm:wgmma_mainloop", (*tile, ("WG", 2))),
            InstanceSpec("store", "//components/epilogue:tma_store"),
        ),
        (ConnectionSpec("mma.ab", "load.ab"), ConnectionSpec("store.acc", "mma.acc")),
        (("a", ("load.A",)), ("b", ("load.B",)), ("out", ("store.C",))),
    )


def test_check_from_a_specification(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pipelink_rules.check.check")
    file = write_json(tmp_path / "gemm.spec.json", gemm_spec())
    assert main(["check", "--root", str(ROOT), str(file)]) == 0
    assert "gemm for sm_90a: no errors or warnings" in capsys.readouterr().out


def test_check_of_an_unknown_component(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = MegakernelSpec("x", (InstanceSpec("a", "//components/gemm:missing"),))
    file = write_json(tmp_path / "x.spec.json", spec)
    pytest.importorskip("pipelink_rules.check.check")
    assert main(["check", "--root", str(ROOT), str(file)]) != 0
    assert "unknown component `//components/gemm:missing`" in capsys.readouterr().err


def test_inspect(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contract = ROOT / "components/stream/rms_norm.contract.yaml"
    assert main(["inspect", str(contract)]) == 0
    assert "component rms_norm 1.0.0 for sm_90a" in capsys.readouterr().out
    assert main(["inspect", str(manifests.saved(built))]) == 0
    text = capsys.readouterr().out
    assert text.startswith("gemm_bias(a, b, bias, scale") and "tensor_map" in text
    assert main(["inspect", str(built / "sample.audit.json")]) == 0
    assert json.loads(capsys.readouterr().out)["entry"] == "sample"
    (built / "notes.txt").write_text("")
    assert main(["inspect", str(built / "notes.txt")]) != 0


def test_internal_errors_have_a_code(
    built: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> str:
        raise RuntimeError("lost")

    monkeypatch.setattr("pipelink_rules.report.map.render_map", broken)
    assert main(["map", str(built)]) == 4
    text = capsys.readouterr().err
    assert "PL9901" in text and "Traceback" not in text and "PIPELINK_TRACEBACK=1" in text
    monkeypatch.setenv("PIPELINK_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        main(["map", str(built)])


def test_a_file_that_contradicts_itself_is_a_finding_about_it(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = built / "sample.program.json"
    file.write_text(file.read_text().replace('"name": "load"', '"name": "lord"'))
    assert main(["map", str(built)]) in (1, 3)
    text = capsys.readouterr().err
    assert "PL0011" in text and "contradicts itself" in text and "`load" in text
    assert f"--> {file}:" in text


def test_bench_forwards(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def run(command: list[str], env: dict[str, str], check: bool) -> SimpleNamespace:
        calls.append((command, env["PYTHONPATH"].split(os.pathsep)[0]))
        return SimpleNamespace(returncode=7)

    monkeypatch.setattr("pipelink_rules.cli.bench.subprocess.run", run)
    assert main(["bench", "gpu", "--pairs", "3"]) == 7
    ((command, path),) = calls
    assert command[1:] == ["-m", "benchmarks.measure.run", "--pairs", "3"]
    assert path == str(ROOT)


def test_link_needs_a_build_and_another_folder(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["link", str(built), "-o", str(built / "out")]) != 0
    assert "is not inside a build directory" in capsys.readouterr().err
    folder = built / "build" / "sm_90a" / "megakernels" / "sample"
    write_json(folder / "sample.program.json", PROGRAM)
    assert main(["link", str(folder), "-o", str(folder)]) != 0
    assert "PL1312" in capsys.readouterr().err
