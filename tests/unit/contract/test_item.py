"""Ring items: offsets, padding and alignment of their tiles."""

from __future__ import annotations

from pipelink_rules.contract.item_layout import item_layout, member_bytes, member_span
from pipelink_rules.model.contract import Layout, Member, Port
from pipelink_rules.model.source_span import Expr


def tile(name: str, *shape: int, strides: tuple[object, ...] = (), swizzle: int = 0) -> Member:
    layout = Layout(strides, swizzle)  # type: ignore[arg-type]
    return Member(name, "bf16", tuple(Expr(str(n)) for n in shape), layout)


def ring(*members: Member) -> Port:
    return Port("ab", "ring", "out", "load", members)


def test_members_follow_each_other_at_their_alignment() -> None:
    layout = item_layout(ring(tile("A", 3, 8), tile("B", 64, 64, swizzle=128)))
    assert layout.offsets == (("A", 0), ("B", 1024))
    assert (layout.align, layout.stage_bytes, layout.data_bytes) == (1024, 9216, 48 + 8192)


def test_a_tile_without_swizzle_may_be_the_target_of_a_tensor_copy() -> None:
    assert item_layout(ring(tile("A", 3, 8))).align == 128


def test_padding_between_rows_counts_as_place_not_as_data() -> None:
    padded = tile("A", 64, 64, strides=(Expr("72"), Expr("1")))
    assert member_bytes(padded) == 8192
    assert member_span(padded) == (63 * 72 + 63 + 1) * 2
    layout = item_layout(ring(padded, tile("B", 8, 8)))
    assert dict(layout.offsets)["B"] >= member_span(padded)


def test_nested_modes_span_to_their_last_element() -> None:
    nested = tile(
        "A", 64, 8, strides=(((Expr("8"), Expr("8")), (Expr("8"), Expr("512"))), Expr("1"))
    )
    assert member_span(nested) == (7 * 8 + 7 * 512 + 7 + 1) * 2
