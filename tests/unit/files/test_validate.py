"""References are validated when a file is read, and reported with the line of the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_gemm import example_trace
from shipped_declarations import megakernels, placement_of, program_of

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.files.codec import read_json, to_json
from pipelink_rules.files.validate import faults_in
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.model.recording import Recording
from pipelink_rules.model.variant import Variant
from pipelink_rules.program.spec import parse_declaration

NAME = "gemm_bias_gelu_epilogue_warps"  # has a ring and a hand-over
Edit = Callable[[Any], None]


def named(items: list[Any], name: str) -> Any:
    return next(item for item in items if item["name"] == name)


def contract(program: Any, instance: str) -> Any:
    return named(program["instances"], instance)["variant"]["contract"]


def put(*path: str | int) -> Edit:
    """Sets the value at all keys of `path` but the last to the last."""
    *keys, last, value = path

    def edit(data: Any) -> None:
        for key in keys:
            data = data[key]
        data[last] = value

    return edit


def in_contract(instance: str, *path: str | int) -> Edit:
    return lambda program: put(*path)(contract(program, instance))


# what is edited -> (edit, where it is reported, what the message names)
PROGRAM: dict[str, tuple[Edit, str, str]] = {
    "an instance": (put("instances", 0, "name", "lord"), "connections[0]", "unknown port"),
    "an instance twice": (
        lambda p: p["instances"].append(p["instances"][0]),
        "instances[6]",
        "duplicate",
    ),
    "a producer": (put("connections", 0, "producer", ["mma", "abc"]), "connections[0].producer",
                   "`mma.abc`"),
    "a consumer that produces": (put("connections", 0, "consumer", ["load", "ab"]),
                                 "connections[0].consumer", "is an out port"),
    "a transfer": (put("connections", 0, "transfer", "carrier"), "connections[0].transfer",
                   "`carrier` is not one of ring"),
    "a ring's producer": (put("channels", 0, "producer", ["load", "xy"]), "channels[0].producer",
                          "`load.xy`"),
    "a ring's consumer": (put("channels", 0, "consumers", [["store", "acc"]]),
                          "channels[0].consumers[0]", "not connected"),
    "a ring without consumers": (put("channels", 0, "consumers", []), "channels[0].consumers",
                                 "no consumer"),
    "a ring that is gone": (lambda p: p["channels"].pop(0), "channels", "no ring joins"),
    "stages": (put("channels", 0, "minimum", 60), "channels[0].minimum", "not between"),
    "an alignment": (put("channels", 0, "align", 48), "channels[0].align", "a power of two"),
    "a member": (put("channels", 0, "member_offsets", 0, 0, "Z"),
                 "channels[0].member_offsets[0][0]", "unknown tile `Z`"),
    "a role's member": (put("roles", 0, "members", 0, ["mma", "none"]), "roles[0].members[0]",
                        "unknown role `mma.none`"),
    "a role that nobody runs": (lambda p: p["roles"].pop(), "roles", "no warps run"),
    "warps": (put("roles", 0, "warps", 33), "roles[0].warps", "33 is not between 1 and 32"),
    "the scheduler": (put("scheduler", ["mma", "mma"]), "scheduler", "not a tile scheduler"),
    "a keyword": (put("tensors", 0, 1, 0, ["load", "none"]), "tensors[0][1][0]", "`load.none`"),
    "a keyword of nothing": (put("tensors", 0, 1, []), "tensors[0][1]", "no port"),
    "the cluster": (put("cluster", [0, 1, 1]), "Program", "a cluster of 0 CTAs"),
    "the target": (put("target", "sm_1"), "target", "`sm_1` is not one of"),
    "a size": (put("symbols", []), "contract.symbols[0].name", "unknown size"),
    "a port's role": (in_contract("load", "ports", 0, "role", "x"),
                      "ports[0].role", "unknown role `x`"),
    "a space": (in_contract("load", "ports", 0, "space", "x"), "ports[0].space", "`x` is not one"),
    "a dtype": (in_contract("load", "ports", 0, "members", 0, "dtype", "f8"), "dtype", "`f8`"),
    "a verb": (in_contract("load", "roles", 0, "body", 0, "body", 0, "verb", "fetch"), ".verb",
               "`fetch` is not one of acquire"),
    "an operation's target": (in_contract("load", "roles", 0, "body", 0, "body", 0, "target", "y"),
                              ".target", "`y` is not a `ring out` or"),
    "an expression": (in_contract("load", "roles", 0, "body", 0, "count", "text", "(1 +"),
                      "count.text", "`(1 +`"),
    "a name in an expression": (in_contract("load", "roles", 0, "body", 0, "count", "text", "zz"),
                                "count.text", "`zz` has no value"),
}  # fmt: skip


def refusal(tmp_path: Path, name: str, noun: Any, edit: Edit) -> Diagnostic:
    data = json.loads(to_json(noun))
    edit(data)
    path = tmp_path / name
    path.write_text(json.dumps(data, indent=2))
    with pytest.raises(PipelinkError) as caught:
        read_json(path, type(noun))
    (found,) = caught.value.diagnostics
    assert found.code == "PL0011" and found.labels[0].span.file == str(path)
    return found


@pytest.mark.parametrize("what", PROGRAM)
def test_a_program_that_leads_nowhere(what: str, tmp_path: Path) -> None:
    edit, where, words = PROGRAM[what]
    found = refusal(tmp_path, "x.program.json", program_of(NAME), edit)
    assert where in found.message and words in found.message, found.message
    if where != "Program":
        assert "contradicts itself" in found.message


def test_the_place_is_a_line_of_the_file(tmp_path: Path) -> None:
    found = refusal(
        tmp_path, "x.program.json", program_of(NAME), put("connections", 0, "transfer", "carrier")
    )
    line = found.labels[0].span.line
    assert "carrier" in (tmp_path / "x.program.json").read_text().splitlines()[line - 1]


def test_an_interface_is_validated_as_the_contract_of_a_program(tmp_path: Path) -> None:
    variant = program_of(NAME).instances[0].variant
    found = refusal(tmp_path, "x.interface.json", variant, put("contract", "roles", 0, "name", "q"))
    assert "unknown role" in found.message


RECORDING: dict[str, tuple[Edit, str]] = {
    "a site": (put("script", "roles", 0, "body", 0, "body", 0, "site", 99), "unknown site"),
    "a site twice": (lambda r: r["sites"].append(r["sites"][0]), "duplicate"),
    "a count": (put("script", "items", "M //"), "M //"),
    "events": (put("rows", 0, "events", "AAAA"), "16 bytes an event"),
    "no events": (put("rows", 0, "events", ""), "16 bytes an event"),
    "a CTA": (put("rows", 0, "cta", 10**6), "not between"),
    "the grid": (put("grid", 0), "not between"),
}  # fmt: skip


@pytest.mark.parametrize("what", RECORDING)
def test_a_recording_that_leads_nowhere(what: str, tmp_path: Path) -> None:
    edit, words = RECORDING[what]
    assert words in refusal(tmp_path, "x.record.json", example_trace(), edit).message


def test_a_placement_names_everything_once(tmp_path: Path) -> None:
    placement = placement_of(NAME)
    found = refusal(
        tmp_path, "x.placement.json", placement, lambda p: p["stages"].append(p["stages"][0])
    )
    assert "duplicate" in found.message


def test_a_specification_has_possible_numbers(tmp_path: Path) -> None:
    spec = parse_declaration(**megakernels()[NAME])
    for path in (("cluster", [0, 1, 1]), ("occupancy", 0), ("warps", [["load", -1]])):
        assert "not between" in refusal(tmp_path, "x.spec.json", spec, put(*path)).message


@pytest.mark.parametrize("name", megakernels())
def test_what_is_shipped_is_accepted(name: str) -> None:
    declared = megakernels()[name]
    assert not [*faults_in(parse_declaration(**declared))]
    for arch in declared["archs"]:
        program = program_of(name, arch)
        assert not [*faults_in(program)]
        assert not [fault for item in program.instances for fault in faults_in(item.variant)]


def test_every_noun_with_references_is_validated() -> None:
    from pipelink_rules.files.validate import _CHECKS, _UNIQUE
    from pipelink_rules.model.linked_kernel import Manifest

    nouns = {Variant, MegakernelSpec, Program, Placement, Manifest, Recording}
    assert {*_CHECKS, *_UNIQUE} >= nouns
