"""How is a tensor reached through a tensor map?  Block -> TileAccess."""

from __future__ import annotations

from pipelink_rules.contract.block_parser import Block
from pipelink_rules.contract.yaml_tree import ScalarNode, SequenceNode
from pipelink_rules.diagnostics.suggest import similar_name_help
from pipelink_rules.model.contract import TileAccess

TILE_KEYS = {"box": True, "swizzle": False, "along": False}
SWIZZLES = (0, 32, 64, 128)
_COMPILE_TIME = ("param",)


def read_tile(block: Block) -> TileAccess | None:
    """The clause `tile` of a global port."""
    inner = block.block("tile", TILE_KEYS)
    if inner is None:
        return None
    box = inner.exprs("box", _COMPILE_TIME)
    shape = block.nodes.get("shape")
    if box and isinstance(shape, SequenceNode) and not len(box) == len(shape.items) <= 5:
        block.findings.add(
            "PL0017",
            f"{inner.named('box')} has another rank than `shape`, or more than 5 modes",
            inner.places["box"],
            expected=f"{len(shape.items)} extents, slowest first",
            found=str(len(box)),
        )
    swizzle = inner.choice("swizzle", SWIZZLES, 0)
    return TileAccess(box, swizzle, _along(inner), inner.span)


def _along(block: Block) -> tuple[str, ...] | None:
    """The work fields that the coordinates depend on; None where it is left out."""
    if "along" not in block:
        return None
    known = block.findings.known
    found = []
    for node in block.items("along", "work fields", may_be_empty=True):
        if not isinstance(node, ScalarNode):
            block.wrong(node, "a work field", block.named("along"))
        elif known.get(node.text) == "field" or block.findings.blind:
            found.append(node.text)
        else:
            fields = [name for name, kind in known.items() if kind == "field"]
            block.findings.add(
                "PL0016",
                f"{block.named('along')} names `{node.text}`, which is not a work field",
                node.span,
                helps=similar_name_help(node.text, fields, "work fields"),
            )
    return tuple(sorted(set(found)))
