"""What a label names."""

from __future__ import annotations

import pytest

from pipelink_rules.actions.labels import Label, parse_label

HERE = Label("", "kernels/norm", "rms")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("//components/gemm:tma_load_ab", Label("", "components/gemm", "tma_load_ab")),
        ("//components/gemm", Label("", "components/gemm", "gemm")),
        ("//:scale", Label("", "", "scale")),
        (":scale", Label("", "kernels/norm", "scale")),
        ("@pipelink//components/gemm:mma", Label("pipelink", "components/gemm", "mma")),
        ("//a//b:c", Label("", "a//b", "c")),
    ],
)
def test_labels_are_read(text: str, label: Label) -> None:
    assert parse_label(text, HERE) == label


@pytest.mark.parametrize(
    "text", ["", "scale", "//", "//../up:x", "//a:b:c", "@pipelink:x", "a/b:c"]
)
def test_what_is_no_label_is_none(text: str) -> None:
    assert parse_label(text, HERE) is None


def test_a_relative_label_needs_a_package() -> None:
    assert parse_label(":scale") is None


def test_labels_of_the_library_stay_in_the_library() -> None:
    inside = Label("pipelink", "components/gemm", "x")
    assert parse_label("//components/include:pipelink", inside) == Label(
        "pipelink", "components/include", "pipelink"
    )


def test_text_of_a_label_reads_back() -> None:
    label = Label("pipelink", "components/gemm", "mma")
    assert parse_label(str(label)) == label


@pytest.mark.parametrize("form", ["//a:{}", "//{}:a", "//a/{}/b:c", "//{}", ":{}"])
def test_names_that_no_file_could_have_are_no_labels(form: str) -> None:
    assert parse_label(form.format("a" * 200), HERE) is not None
    assert parse_label(form.format("a" * 201), HERE) is None
