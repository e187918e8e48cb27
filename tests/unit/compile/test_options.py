"""Options are either the variant's, harmless, or refused with a reason."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.compile.options import classify_options
from pipelink_rules.contract.codegen_flags import FLAG_DEFAULTS, normal_flags
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.toolkit.command_lines import flag_arguments


@pytest.mark.parametrize(
    ("copts", "flags"),
    [
        ([], ()),
        (["--ftz=true"], ("ftz=true",)),
        (["-ftz=true", "--prec-div=false"], ("ftz=true", "prec-div=false")),
        (["--use_fast_math"], ("ftz=true", "prec-div=false", "prec-sqrt=false")),
        (["-use_fast_math", "--ftz=false"], ("prec-div=false", "prec-sqrt=false")),
        # nvcc lets what is said win over --use_fast_math in any order (toolkit 13.5).
        (["--ftz=false", "-use_fast_math"], ("prec-div=false", "prec-sqrt=false")),
        (["--fmad=false", "--fmad=true"], ()),
        (["--ftz=false", "--fmad=true"], ()),
    ],
)
def test_flags_are_those_that_differ_from_the_default(copts: list[str], flags: tuple) -> None:
    assert classify_options(copts).flags == flags


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(FLAG_DEFAULTS)), st.booleans()),
        unique_by=lambda item: item[0],
    )
)
def test_flags_are_written_as_the_contract_binds_them(chosen: list[tuple[str, bool]]) -> None:
    copts = [f"--{name}={str(value).lower()}" for name, value in chosen]
    assert classify_options(copts).flags == normal_flags(copts)


def test_all_four_flags_are_always_said() -> None:
    for values in itertools.product((False, True), repeat=4):
        wanted = dict(zip(sorted(FLAG_DEFAULTS), values, strict=True))
        flags = [f"{name}={str(value).lower()}" for name, value in wanted.items()]
        assert flag_arguments(flags) == [f"--{flag}" for flag in flags]
    assert flag_arguments(()) == [
        "--fmad=true",
        "--ftz=false",
        "--prec-div=true",
        "--prec-sqrt=true",
    ]


def test_harmless_options_keep_their_order() -> None:
    copts = ["-std=c++20", "--diag-suppress=177", "--expt-extended-lambda"]
    assert classify_options(copts).other == tuple(copts)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("-G", "device debugging"),
        ("-Xptxas=-O1", "ptxas runs when"),
        ("-maxrregcount=64", "ptxas runs when"),
        ("-arch=sm_90a", "archs="),
        ("-gencode=arch=compute_90,code=sm_90", "archs="),
        ("-dlto", "selects the compiler's output"),
        ("-rdc=false", "selects the compiler's output"),
        ("-Iinclude", "inputs of the build"),
        ("-DN=3", "inputs of the build"),
        ("-O0", "compiled with -O3"),
        ("-lineinfo", "absolute paths"),
        ("--ftz", "--ftz"),
        ("-ftz=yes", "-ftz=yes"),
        ("--allow-unsupported-compiler", "--allow-unsupported-compiler"),
    ],
)
def test_everything_else_is_refused(option: str, reason: str) -> None:
    with pytest.raises(PipelinkError) as problem:
        classify_options([option])
    (finding,) = problem.value.diagnostics
    assert finding.code == "PL1215"
    assert reason in finding.found or reason in finding.message
