"""Command lines: complete, in one order, and without unexpected paths."""

from __future__ import annotations

from link_fixtures import toolkit_of

from pipelink_rules.toolkit import command_lines

UNIT = command_lines.Unit(
    "a/scale.cu", "sm_90a", ("build/v", "include"), ("N=3",), ("ftz=true",), ("--diag-suppress=1",)
)


def test_an_object_is_link_time_code_of_the_exact_target() -> None:
    argv = command_lines.fatbin_argv(toolkit_of(), UNIT, "out.fatbin", "out.d")
    assert argv == [
        "/cuda/bin/nvcc",
        "-std=c++17",
        "-O3",
        "-rdc=true",
        "--expt-relaxed-constexpr",
        "--fmad=true",
        "--ftz=true",
        "--prec-div=true",
        "--prec-sqrt=true",
        "-Werror=all-warnings",
        "--diag-suppress=1",
        "-DN=3",
        "-Ibuild/v",
        "-Iinclude",
        "--fatbin",
        "-gencode",
        "arch=compute_90a,code=lto_90a",
        "-MMD",
        "-MF",
        "out.d",
        "a/scale.cu",
        "-o",
        "out.fatbin",
    ]


def test_dialect_of_the_component_wins() -> None:
    unit = command_lines.Unit("a.cu", "sm_100a", options=("-std=c++20",), strict=False)
    argv = command_lines.fatbin_argv(toolkit_of(), unit, "o")
    assert [part for part in argv if part.startswith("-std")] == ["-std=c++20"]
    assert "-Werror=all-warnings" not in argv
    assert "arch=compute_100a,code=lto_100a" in argv


def test_object_and_shadow_come_from_one_run() -> None:
    argv = command_lines.fatbin_argv(toolkit_of(), UNIT, "out.fatbin", "out.d", "work")
    assert "arch=compute_90a,code=[compute_90a,lto_90a]" in argv
    assert argv[argv.index("--keep-dir") + 1] == "work"


def test_the_listing_is_not_optimised_and_shows_inlined_functions() -> None:
    argv = command_lines.listing_argv(toolkit_of(), UNIT, "out.ptx")
    assert argv[argv.index("-Xcicc") + 1] == "-O0"
    assert "-Dalways_inline=unused" in argv
    hidden = command_lines.listing_argv(toolkit_of(), UNIT, "out.ptx", show_inline=False)
    assert "-Dalways_inline=unused" not in hidden


def test_a_native_twin_is_one_program_without_link_time_optimisation() -> None:
    argv = command_lines.cubin_argv(toolkit_of(), UNIT, "out.cubin")
    assert "-cubin" in argv and "-rdc=true" not in argv
    assert "arch=compute_90a,code=sm_90a" in argv


def test_a_link_says_everything_nvlink_needs() -> None:
    argv = command_lines.nvlink_argv(
        toolkit_of(), "sm_90a", ["a.fatbin", "b.fatbin"], "o", options=["-x"]
    )
    assert argv == [
        "/cuda/bin/nvlink",
        "-Werror",
        "-lto",
        "-nvvmpath=/cuda/nvvm",
        "-L/cuda/lib64",
        "-lcudadevrt",
        "-arch=sm_90a",
        "-Xptxas=-v",
        "-x",
        "a.fatbin",
        "b.fatbin",
        "-o",
        "o",
    ]
    assert "-emit-ptx" in command_lines.nvlink_argv(toolkit_of(), "sm_90a", [], "o", ptx=True)
