"""Parameters that are left out follow from what is connected."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import MegakernelSpec
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Variant
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.spec import parse_declaration


def bound(
    clauses: dict[str, Any], contracts: dict[str, Contract], **flags: list[str]
) -> dict[str, Variant]:
    """Instance -> variant."""
    return bind_instances(parse_declaration(**clauses), contracts, flags)


def arguments(variants: dict[str, Variant], instance: str) -> dict[str, int | str]:
    """Parameter -> value."""
    return dict(variants[instance].arguments)


def refused(
    clauses: dict[str, Any], contracts: dict[str, Contract], text: str = ""
) -> tuple[Diagnostic, ...]:
    """The findings."""
    with pytest.raises(PipelinkError) as caught:
        bind_instances(parse_declaration(**clauses, text=text), contracts, {})
    return caught.value.diagnostics


def test_one_tile_is_enough(linear: dict[str, Any], parts: dict[str, Contract]) -> None:
    variants = bound(linear, parts)
    assert list(variants) == ["tiles", "load", "mma", "bias", "store"]
    tile = {"TM": 128, "TN": 128, "TK": 64}
    for variant in variants.values():
        assert tile.items() <= dict(variant.arguments).items()


@pytest.mark.parametrize("giver", ["tiles", "load", "mma", "bias", "store"])
def test_it_does_not_matter_who_is_given_the_tile(
    linear: dict[str, Any], parts: dict[str, Contract], giver: str
) -> None:
    expected = bound(linear, parts)
    linear["instances"]["load"] = ("//parts:load", {})
    linear["instances"][giver] = (f"//parts:{giver}", {"TM": 128, "TN": 128})
    assert bound(linear, parts) == expected


def test_the_order_of_the_declaration_does_not_matter(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    expected = bound(linear, parts)
    for order in itertools.islice(itertools.permutations(linear["instances"].items()), 0, 120, 17):
        linear["instances"] = dict(order)
        assert bound(linear, parts) == expected


def test_a_where_clause_with_one_solution_decides(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    assert arguments(bound(linear, parts), "mma")["WG"] == 2
    linear["instances"]["load"] = ("//parts:load", {"TM": 64, "TN": 128})
    assert arguments(bound(linear, parts), "mma")["WG"] == 1


def test_a_where_clause_gives_the_tile_to_all(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    linear["instances"]["load"] = ("//parts:load", {"TN": 64})
    linear["instances"]["mma"] = ("//parts:mma", {"WG": 1})
    assert arguments(bound(linear, parts), "store")["TM"] == 64


def test_a_connection_goes_before_a_default(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    linear["instances"]["load"] = ("//parts:load", {"TM": 128, "TN": 128, "T": "f16"})
    variants = bound(linear, parts)
    assert arguments(variants, "mma")["T"] == "f16"
    assert arguments(variants, "store")["T"] == "bf16"  # registers are f32: nothing ties it


def test_a_shared_tensor_ties_its_dtypes(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    linear["instances"]["store"] = ("//parts:store", {"T": "f16"})
    linear["tensors"] = {"a": "load.A", "b": ["load.B", "store.C"], "bias": "bias.vector"}
    assert arguments(bound(linear, parts), "mma")["T"] == "f16"


def test_given_values_are_never_replaced(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    linear["instances"]["mma"] = ("//parts:mma", {"TM": 64, "TN": 128, "WG": 1})
    for name in ("tiles", "bias", "store"):
        linear["instances"][name] = (f"//parts:{name}", {"TM": 128, "TN": 128})
    assert arguments(bound(linear, parts), "mma")["TM"] == 64  # `check` compares both ends


def test_a_contradiction_names_both_sources(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    linear["instances"]["tiles"] = ("//parts:tiles", {"TM": 64})
    linear["instances"]["bias"] = ("//parts:bias", {"TM": 128})
    linear["instances"]["store"] = ("//parts:store", {"TM": 128})
    (finding,) = refused(linear, parts)
    assert finding.code == "PL0064"
    assert finding.message == "conflicting values for parameter `TM` of `mma`: 128 and 64"
    said = [label.text for label in finding.labels]
    assert "TM = 128 is set for `load`" in said
    assert "TM = 64 is set for `tiles`" in said
    assert "`mma` has TM = 128 by load.ab -> mma.ab" in said


def test_one_contradiction_is_reported_once(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    linear["instances"]["tiles"] = ("//parts:tiles", {"TM": 64})
    assert [item.code for item in refused(linear, parts)] == ["PL0064"]


ROWS = """
contract: 2
component: {name}
version: 1.0.0
summary: Rows through a ring.
arch: [sm_90a]
params: {{D: {{type: int, default: {default}, in: {choices}}}}}
symbols: {{R: {{min: 1}}}}
{work}
"""
READER = (
    ROWS
    + """
roles: {{go: {{warps: 1, registers: {{min: 24}}, body: [acquire x, expect x, copy X -> x.r]}}}}
ports:
  X: {{space: global, direction: in, role: go, dtype: bf16, shape: [R, D]}}
  x: {{space: ring, direction: out, role: go, proxy: async, tx_bytes: D * 2, item: {{
      r: {{dtype: bf16, shape: [D]}}}}}}
"""
)
WRITER = (
    ROWS
    + """
roles:
  go: {{warps: 1, registers: {{min: 24}}, body: [wait x, read x, write X, release x lag 0]}}
ports:
  X: {{space: global, direction: out, role: go, dtype: bf16, shape: [R, D]}}
  x: {{space: ring, direction: in, role: go, item: {{r: {{dtype: bf16, shape: [D]}}}}}}
"""
)
DEALER = ROWS + "roles: {{next: {{scheduler: true}}}}\n"
TAKE = "work: {{kind: row, direction: in, tile: [1], fields: {{}}}}"
DEAL = "work: {{kind: row, direction: out, tile: [1], tiles: R, fields: {{}}}}"


def rows(*defaults: tuple[int, list[int]]) -> tuple[dict[str, Any], dict[str, Contract]]:
    """A reader and a writer with their defaults and choices of D."""
    contracts = {}
    for name, text, work, (default, choices) in (
        ("reader", READER, TAKE, defaults[0]),
        ("writer", WRITER, TAKE, defaults[1]),
        ("dealer", DEALER, DEAL, (8, [8])),
    ):
        filled = text.format(name=name, default=default, choices=choices, work=work.format())
        contracts[f"//c:{name}"] = parse_contract(filled, f"{name}.contract.yaml")
    clauses = {
        "name": "rows",
        "instances": {name: (f"//c:{name}", {}) for name in ("dealer", "reader", "writer")},
        "connect": {"writer.x": "reader.x"},
        "tensors": {"x": "reader.X", "y": "writer.X"},
        "span": Span("SConscript", 1, 1),
    }
    return clauses, contracts


def test_equal_defaults_agree() -> None:
    variants = bound(*rows((64, [64, 128]), (64, [64, 128])))
    assert {dict(item.arguments)["D"] for name, item in variants.items() if name != "dealer"} == {
        64
    }


def test_a_default_that_the_other_end_refuses_gives_way() -> None:
    variants = bound(*rows((64, [64, 128]), (128, [128])))
    assert arguments(variants, "reader")["D"] == 128


def test_defaults_that_differ_are_a_contradiction() -> None:
    (finding,) = refused(*rows((64, [64, 128]), (128, [64, 128])))
    assert finding.code == "PL0064"
    said = [label.text for label in finding.labels]
    assert "the default of `reader` is D = 64" in said
    assert "the default of `writer` is D = 128" in said


def test_what_nothing_determines_is_reported_once(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    linear["instances"]["load"] = ("//parts:load", {})
    found = refused(linear, parts)
    assert [item.code for item in found] == ["PL0063", "PL0063"]  # TM and TN; WG follows from TM
    assert [item.subject for item in found] == ["tiles.TM", "tiles.TN"]


def test_findings_of_a_value_point_to_its_entry(parts: dict[str, Contract], linear: Any) -> None:
    text = (
        'env.Megakernel(\n instances={\n  "tiles": ("//parts:tiles", {}),\n'
        '  "load": ("//parts:load", {"TM": 128, "TN": 96}),\n })\n'
    )
    linear["instances"]["load"] = ("//parts:load", {"TM": 128, "TN": 96})
    (finding,) = refused(linear, parts, text)  # mma and store refuse it too, because of load
    assert (finding.code, finding.subject) == ("PL0026", "load: load.TN")
    assert finding.labels[0].span == Span("SConscript", 4, 40, 4)


def test_rejected_inferred_value_reports_its_origin(
    parts: dict[str, Contract], linear: dict[str, Any]
) -> None:
    linear["instances"]["load"] = ("//parts:load", {})
    linear["instances"]["tiles"] = ("//parts:tiles", {"TM": 128, "TN": 96})
    found = refused(linear, parts)
    assert {item.code for item in found} == {"PL0026"}
    assert all("TN = 96 is set for `tiles`" in [x.text for x in item.labels] for item in found)


def test_flags_reach_the_variants(linear: dict[str, Any], parts: dict[str, Contract]) -> None:
    variants = bound(linear, parts, **{"//parts:bias": ["ftz=true"]})
    assert variants["bias"].flags == ("ftz=true",)
    assert variants["store"].flags == ()


def test_every_declared_megakernel_is_determined(
    declarations: dict[str, MegakernelSpec], components: dict[str, Contract]
) -> None:
    for spec in declarations.values():
        variants = bind_instances(spec, components)
        assert {item.name for item in spec.instances} == set(variants)


def test_the_epilogue_of_a_shipped_gemm_follows_from_its_loader(
    components: dict[str, Contract],
) -> None:
    clauses = {
        "name": "gemm",
        "instances": {
            "tiles": ("//components/scheduler:persistent_tiles", {}),
            "load": ("//components/gemm:tma_load_ab", {"TM": 128, "TN": 256, "T": "f16"}),
            "mma": ("//components/gemm:wgmma_mainloop", {}),
            "bias": ("//components/epilogue:bias", {}),
            "store": ("//components/epilogue:tma_store", {}),
        },
        "connect": {"mma.ab": "load.ab", "bias.acc": "mma.acc", "store.acc": "bias.out"},
        "tensors": {"a": "load.A", "b": "load.B", "bias": "bias.vector", "out": "store.C"},
    }
    variants = bound(clauses, components)
    assert arguments(variants, "mma") == {"TM": 128, "TN": 256, "TK": 64, "WG": 2, "T": "f16"}
    assert arguments(variants, "tiles")["TN"] == 256
