"""The first candidate that passes the probe is taken; each is probed once; reasons are kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from scripted import DROPS_SUFFIX, EMPTY_KERNEL, IGNORES, compilations, fake_toolkit

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.toolkit.find import Candidate, candidates, find_toolkit, probe_candidate
from pipelink_rules.toolkit.toolkit import Toolkit, ToolkitRejected

BARE = {"PATH": "/usr/bin:/bin"}


@pytest.fixture(autouse=True)
def only_what_a_test_makes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No toolkit of this machine takes part."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setattr("pipelink_rules.toolkit.find.system_roots", lambda: [])


def choose(root: Path) -> dict[str, str]:
    return {**BARE, "PIPELINK_CUDA": str(root)}


def test_order_of_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = fake_toolkit(tmp_path / "chosen")
    wheels = fake_toolkit(tmp_path / "site/nvidia/cu13")
    on_path = fake_toolkit(tmp_path / "opt/cuda")
    system = fake_toolkit(tmp_path / "cuda-13.5")
    monkeypatch.setattr("pipelink_rules.toolkit.find.system_roots", lambda: [system, wheels])
    environ = {"PIPELINK_CUDA": str(chosen), "PATH": f"{on_path}/bin:/usr/bin:/bin"}
    found = [(item.source, item.root) for item in candidates(environ)]
    assert found == [
        ("$PIPELINK_CUDA", chosen),
        ("wheels of this python", wheels),
        ("nvcc on PATH", on_path),
        ("/usr/local", system),
    ]


def test_cuda_home_has_no_say(tmp_path: Path) -> None:
    root = fake_toolkit(tmp_path / "home")
    assert not list(candidates({**BARE, "CUDA_HOME": str(root), "CUDA_PATH": str(root)}))


def test_an_accepted_toolkit_is_probed_once(tmp_path: Path) -> None:
    root = fake_toolkit(tmp_path / "cuda")
    build = tmp_path / "build"
    first = find_toolkit(build, choose(root))
    assert isinstance(first, Toolkit)
    assert (first.version, first.source) == ("13.5.37", "$PIPELINK_CUDA")
    assert compilations(root) == 2
    assert find_toolkit(build, choose(root)) == first
    assert compilations(root) == 2
    assert sorted(os.listdir(build / ".toolkit")) == [Path(first.nvvmpath).name, "probe.json"]


@pytest.mark.parametrize("name", ["bin/ptxas", "lib/libnvvm.so.4", "include/cuda_runtime.h"])
def test_a_changed_toolkit_is_probed_again(tmp_path: Path, name: str) -> None:
    root = fake_toolkit(tmp_path / "cuda")
    first = find_toolkit(tmp_path / "build", choose(root))
    with open(root / name, "a") as stream:
        stream.write("# patched\n")
    second = find_toolkit(tmp_path / "build", choose(root))
    assert compilations(root) == 4
    assert first.fingerprint != second.fingerprint


def test_a_damaged_cache_is_no_harm(tmp_path: Path) -> None:
    root = fake_toolkit(tmp_path / "cuda")
    first = find_toolkit(tmp_path / "build", choose(root))
    (tmp_path / "build/.toolkit/probe.json").write_text(
        '{"format": "pipelink/probe/2", "candidates": []'
    )
    assert find_toolkit(tmp_path / "build", choose(root)) == first


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"link": DROPS_SUFFIX}, "drops the 'a' of sm_90a"),
        ({"link": EMPTY_KERNEL}, "success without the linked kernel"),
        ({"link": IGNORES}, "ignores setmaxnreg"),
        ({"link": "echo 'nvlink fatal : elfLink linker library load error'; exit 1"}, "libnvvm"),
        ({"link": "exit 1"}, "cannot link"),
        ({"compile_": "echo 'nvcc fatal: no'; exit 1"}, "cannot compile a component: nvcc fatal"),
    ],
)
def test_a_refused_toolkit_says_why(tmp_path: Path, changes: dict[str, str], reason: str) -> None:
    root = fake_toolkit(tmp_path / "cuda", "13.0.88", **changes)
    found = probe_candidate(Candidate("test", root), tmp_path / "build", BARE)
    assert isinstance(found, ToolkitRejected)
    assert found.version == "13.0.88"
    assert reason in found.reason


def test_a_choice_is_not_a_hint(tmp_path: Path) -> None:
    fake_toolkit(tmp_path / "site/nvidia/cu13")
    bad = fake_toolkit(tmp_path / "chosen", link=DROPS_SUFFIX)
    with pytest.raises(PipelinkError) as problem:
        find_toolkit(tmp_path / "build", choose(bad))
    (finding,) = problem.value.diagnostics
    assert finding.code == "PL1201"
    assert len(finding.notes) == 1 and "drops the 'a'" in finding.notes[0]


def test_others_are_passed_over_and_remembered(tmp_path: Path) -> None:
    fake_toolkit(tmp_path / "site/nvidia/cu13", "13.1.115", link=DROPS_SUFFIX)
    good = fake_toolkit(tmp_path / "opt/cuda")
    found = find_toolkit(tmp_path / "build", {"PATH": f"{good}/bin:/usr/bin:/bin"})
    assert found.root == str(good)
    assert [item.version for item in found.refused] == ["13.1.115"]
