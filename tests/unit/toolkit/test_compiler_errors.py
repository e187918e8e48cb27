"""A compiler's refusal is mapped to the places and words of the contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from shipped_declarations import contracts

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.header import emit_header
from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.toolkit.compiler_errors import Subject, diagnose
from pipelink_rules.toolkit.process import ToolOutput, check_alive, quote


def finding_of(text: str) -> Diagnostic:
    contract = contracts()["//components/gemm:wgmma_mainloop"]
    variant = bind(contract, {"TM": 128, "TN": 256, "WG": 2})
    subject = Subject("component `wgmma_mainloop`", variant.contract, emit_header(variant))
    return diagnose(ToolOutput(("nvcc", "mma.cu"), 2, text), subject)


def test_every_error_is_a_place(tmp_path: Path) -> None:
    source = tmp_path / "mma.cu"
    source.write_text("int f() {\n  return kTNN + acc;\n}\n")
    finding = finding_of(
        f'{source}(2): error: identifier "kTNN" is undefined\n    return kTNN + acc;\n'
        f'{source}(2): error #20-D: identifier "acc" is undefined\n'
        f"{source}(3): error: expected a declaration\n"
    )
    spans = [(label.span.line, label.span.column, label.span.length) for label in finding.labels]
    assert (2, 10, 4) in spans and (2, 17, 3) in spans and (3, 1, 1) in spans
    assert finding.code == "PL0905"


def test_a_parameter_of_the_contract_is_named() -> None:
    finding = finding_of('mma.cu(2): error: identifier "kTNN" is undefined')
    files = [label.span.file for label in finding.labels]
    assert files[0] == "mma.cu" and files[1].endswith("wgmma_mainloop.contract.yaml")
    assert finding.suggestions == ("a similar name exists: `kTN`",)


def test_an_unknown_word_gets_the_parameters() -> None:
    finding = finding_of('mma.cu(2): error: identifier "zzzzzz" is undefined')
    assert finding.suggestions and "kTM, kTN, kTK, kWG" in finding.suggestions[0]


def test_a_word_outside_of_the_namespace() -> None:
    finding = finding_of('mma.cu(2): error: identifier "kTN" is undefined')
    assert finding.suggestions == ("write PL_COMPONENT::kTN: it is in the component's namespace",)


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("mma.cu:5:10: fatal error: mma.contract.cuh: No such file or directory", "wgmma_mainloop"),
        ('mma.cu(9): error: declaration is incompatible with "void f()"', "generated prototype"),
    ],
)
def test_known_mistakes(text: str, help_: str) -> None:
    finding = finding_of(text)
    assert help_ in finding.suggestions[0]


def test_without_a_place_the_contract_is_shown() -> None:
    finding = finding_of("nvcc fatal   : Unknown option '-foo'")
    assert finding.labels[0].span.file.endswith("wgmma_mainloop.contract.yaml")
    assert "Unknown option" in finding.found


def test_long_texts_are_cut() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    assert quote(text).splitlines()[-1] == "... 76 more lines"


@pytest.mark.parametrize(
    ("output", "code"),
    [
        (ToolOutput(("/cuda/bin/ptxas",), -11, ""), "PL1204"),
        (ToolOutput(("/cuda/bin/ptxas",), 127, "No such file"), "PL1204"),
        (ToolOutput(("/cuda/bin/ptxas",), -9, "", timed_out=True), "PL1205"),
    ],
)
def test_broken_tools_are_no_mistake_of_a_component(output: ToolOutput, code: str) -> None:
    with pytest.raises(PipelinkError) as problem:
        check_alive(output)
    assert problem.value.diagnostics[0].code == code
    check_alive(ToolOutput(("/cuda/bin/ptxas",), 255, "error"))
