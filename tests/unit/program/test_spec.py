"""Plain values of a declaration become a MegakernelSpec, or findings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.model.program import ConnectionSpec, MegakernelSpec
from pipelink_rules.model.source_span import Span
from pipelink_rules.program.spec import check_instances, parse_declaration


def codes(**clauses: Any) -> list[str]:
    """The codes of the findings, in order."""
    with pytest.raises(PipelinkError) as caught:
        parse_declaration(**clauses)
    return [item.code for item in caught.value.diagnostics]


def test_a_declaration_keeps_its_order(linear: dict[str, Any]) -> None:
    spec = parse_declaration(**linear)
    assert [item.name for item in spec.instances] == ["tiles", "load", "mma", "bias", "store"]
    assert [keyword for keyword, _ in spec.tensors] == ["a", "b", "bias", "out"]
    assert spec.instances[1].arguments == (("TM", 128), ("TN", 128))
    assert spec.archs == ("sm_90a",)


def test_a_tensor_may_feed_several_ports(linear: dict[str, Any]) -> None:
    linear["tensors"]["a"] = ["load.A", "bias.vector"]
    assert parse_declaration(**linear).tensors[0] == ("a", ("load.A", "bias.vector"))


def test_a_label_names_the_component_of_its_package(linear: dict[str, Any]) -> None:
    linear["instances"]["tiles"] = ("//schedules/tiles", {})
    assert parse_declaration(**linear).instances[0].label == "//schedules/tiles:tiles"


def test_one_target_may_be_a_string(linear: dict[str, Any]) -> None:
    assert parse_declaration(**linear, archs="sm_100a").archs == ("sm_100a",)
    assert parse_declaration(**linear, archs=["sm_90a", "sm_90a"]).archs == ("sm_90a",)


def test_places_point_to_the_entry_of_the_sconscript() -> None:
    text = (
        'env.Megakernel(\n  name="k",\n  instances={"a": ("//c:x", {"N": 1})},\n'
        '  stages={"a.p": 2},\n)\n'
    )
    spec = parse_declaration(
        "k",
        {"a": ("//c:x", {"N": 1})},
        stages={"a.p": 2},
        span=Span("SConscript", 1, 1),
        text=text,
    )
    assert spec.span == Span("SConscript", 1, 1, 14)
    assert spec.where("instances", "a", "N") == Span("SConscript", 3, 30, 3)
    assert spec.where("stages", "a.p") == Span("SConscript", 4, 11, 5)
    assert spec.where("stages", "unwritten") == spec.span
    assert spec.instances[0].span == Span("SConscript", 3, 14, 3)


def test_without_the_text_places_are_the_call(linear: dict[str, Any]) -> None:
    spec = parse_declaration(**linear)
    assert {item.span for item in spec.instances} == {linear["span"]}
    assert spec.where("connect", "mma.ab") == linear["span"]


def test_all_diagnostics_are_reported_together(linear: dict[str, Any]) -> None:
    linear["name"] = "2nd"
    linear["instances"]["tiles"] = "//parts:tiles"
    linear["connect"]["mma.ab"] = 3
    linear["tensors"]["b"] = []
    found = codes(**linear, archs=["sm_90"], occupancy=0, cluster=(2, 2), runtime="fast")
    expected = ["PL0041", *["PL0040"] * 3, "PL0046", "PL0047", "PL0040", "PL0048"]
    assert found == expected


@pytest.mark.parametrize("value", [True, 1.5, None, "two"])
def test_a_stage_count_is_an_integer(linear: dict[str, Any], value: object) -> None:
    assert codes(**linear, stages={"load.ab": value}) == ["PL0040"]


@pytest.mark.parametrize("label", ["parts:load", "/parts:load", "//parts:", "//par ts:x", ""])
def test_a_label_begins_at_the_root(linear: dict[str, Any], label: str) -> None:
    linear["instances"]["load"] = (label, {})
    assert codes(**linear) == ["PL0042"]


@pytest.mark.parametrize("port", ["load", "load.", ".ab", "load.ab.A", "load ab"])
def test_a_port_is_named_with_its_instance(linear: dict[str, Any], port: str) -> None:
    linear["connect"]["mma.ab"] = port
    assert codes(**linear) == ["PL0043"]


def test_every_entry_about_an_unknown_instance_is_reported(linear: dict[str, Any]) -> None:
    linear["connect"]["mma.ab"] = "lod.ab"
    linear["tensors"]["a"] = "lod.A"
    found = codes(**linear, stages={"lod.ab": 2}, warps={"lod": 1}, transfers={"lod.x": "ring"})
    assert found == ["PL0044"] * 5


def test_a_specification_from_a_file_is_checked_again(linear: dict[str, Any]) -> None:
    spec = parse_declaration(**linear)
    broken = MegakernelSpec(
        spec.name, spec.instances, connect=(ConnectionSpec("mma.ab", "nobody.ab"),)
    )
    assert [item.code for item in check_instances(broken).items] == ["PL0044"]


def test_it_survives_its_file(linear: dict[str, Any], tmp_path: Any) -> None:
    spec = parse_declaration(**linear)
    write_json(tmp_path / "linear.spec.json", spec)
    assert read_json(tmp_path / "linear.spec.json", MegakernelSpec) == spec


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text("ab.:/", max_size=4) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)
CLAUSES = [
    *("name", "instances", "connect", "tensors", "scalars", "transfers", "stages", "warps"),
    *("archs", "occupancy", "cluster", "runtime", "summary"),
]


@given(clauses=st.fixed_dictionaries({"name": VALUES, "instances": VALUES}), more=st.data())
def test_whatever_is_written_ends_in_a_spec_or_in_findings(
    clauses: dict[str, Any], more: st.DataObject
) -> None:
    for clause in more.draw(st.sets(st.sampled_from(CLAUSES), max_size=4)):
        clauses[clause] = more.draw(VALUES)
    try:
        spec = parse_declaration(
            **clauses, span=Span("SConscript", 1, 1), text="env.Megakernel(name=1)"
        )
    except PipelinkError as problem:
        assert all(item.code.startswith("PL004") for item in problem.diagnostics)
    else:
        assert isinstance(spec, MegakernelSpec)
