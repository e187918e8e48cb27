"""Headers: what `#include` lines reach, and what the compiler's list says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelink_rules.actions.header_deps import (
    includes_of,
    read_depfile,
    require_declared,
    resolve,
    undeclared,
)
from pipelink_rules.diagnostics.diagnostic import PipelinkError


def test_include_lines_are_found_in_every_spelling() -> None:
    text = '#include "a.cuh"\n  #  include <pipelink/b.cuh>\n#include MACRO\n// #include "c.cuh"\n'
    assert includes_of(text) == (("a.cuh", True), ("pipelink/b.cuh", False))


def test_include_lines_behind_conditions_count() -> None:
    # The compiler may take the other branch for another target (SCons #4517: __has_include).
    text = '#if 0\n#include "a.cuh"\n#endif\n#if __has_include("b.cuh")\n#include "b.cuh"\n#endif\n'
    assert [name for name, _ in includes_of(text)] == ["a.cuh", "b.cuh"]


def test_quoted_names_are_looked_up_beside_the_file_first() -> None:
    declared = {"/p/x/a.cuh": 1, "/p/inc/a.cuh": 2}
    assert resolve("a.cuh", True, "/p/x", ["/p/inc"], declared) == "/p/x/a.cuh"
    assert resolve("a.cuh", False, "/p/x", ["/p/inc"], declared) == "/p/inc/a.cuh"
    assert resolve("../inc/a.cuh", True, "/p/x", [], declared) == "/p/inc/a.cuh"
    assert resolve("other.cuh", True, "/p/x", ["/p/inc"], declared) is None


def test_depfile_as_nvcc_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "unit.d"
    path.write_text("unit.fatbin : src/a.cu \\\n  src/my\\ header.cuh \\\n  /usr/include/c.h\n")
    assert read_depfile(path) == ("src/a.cu", "src/my header.cuh", "/usr/include/c.h")


def test_changa_26_names_of_temporaries_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "unit.d"
    path.write_text(
        "scratch/tmpxft_0001_00-6_a.o : a.cu scratch/tmpxft_0001_00-3_a.cudafe1.gpu b.cuh\n"
    )
    assert read_depfile(path) == ("a.cu", "b.cuh")


def test_cccl_9790_headers_after_those_of_the_toolkit_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "unit.d"
    path.write_text("a.fatbin : a.cu \\\n /cuda/include/cuda/barrier \\\n late.cuh\n")
    assert undeclared(read_depfile(path), ["a.cu"], ["/cuda/include"]) == ("late.cuh",)


def test_the_same_file_by_another_path_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc/a.cuh").touch()
    (tmp_path / "link").symlink_to(tmp_path / "inc")
    assert not undeclared(["link/a.cuh", "./inc/../inc/a.cuh"], ["inc/a.cuh"], [])


def test_folders_are_not_prefixes_of_names(tmp_path: Path) -> None:
    assert undeclared(["/cuda/include2/x.h"], [], ["/cuda/include"]) == ("/cuda/include2/x.h",)


def test_kokkos_4078_a_missing_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PipelinkError) as caught:
        require_declared("//:a", "a.cu", tmp_path / "none.d", [], [])
    assert caught.value.diagnostics[0].code == "PL1313"


def test_every_undeclared_header_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "unit.d"
    path.write_text("a.fatbin : a.cu b.cuh c.cuh\n")
    with pytest.raises(PipelinkError) as caught:
        require_declared("//:a", "a.cu", path, ["a.cu"], [], reachable=["c.cuh"])
    found = caught.value.diagnostics
    assert [item.code for item in found] == ["PL1303", "PL1303"]
    assert "macro" in "".join(found[1].notes) and not found[0].notes
