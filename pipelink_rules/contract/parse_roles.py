"""Parser of roles: Block -> Role."""

from pipelink_rules.contract.block_parser import Block
from pipelink_rules.contract.parse_operations import OperationScope, parse_body, uses_mma
from pipelink_rules.contract.parse_ports import COMPILE_TIME
from pipelink_rules.model.contract import Registers, Role, Work
from pipelink_rules.model.source_span import Expr

CONVERGED = ("thread", "warp", "warpgroup", "role")
SPLIT = ("role", "warpgroup", "warp")

ROLE_KEYS = dict.fromkeys(
    ("scheduler", "warps", "converged", "split", "registers", "prologue", "body", "epilogue"), False
)
REGISTERS_KEYS = {"min": False, "want": False, "entry": False}


def parse_role(
    name: str,
    block: Block,
    work: Work | None,
    scope: OperationScope,
) -> Role:
    scheduler = block.flag("scheduler", False)
    for key in ("warps", "body"):
        if scheduler:
            block.refuse(key, "a tile scheduler runs inside the other roles")
        else:
            block.require(key, "which runs on its own warps")
    if scheduler:
        for key in ("registers", "converged", "split", "prologue", "epilogue"):
            block.refuse(key, "a tile scheduler runs inside the other roles")
        if work is not None and work.direction == "in":
            block.refuse(
                "scheduler",
                "the work of this component is an input",
                "set `direction: out` of `work`",
            )
    bodies = {key: parse_body(block, key, scope) for key in ("prologue", "body", "epilogue")}
    mma = uses_mma(bodies["body"])
    return Role(
        name=name,
        warps=block.expr("warps", COMPILE_TIME) or Expr("1"),
        converged=block.word("converged", CONVERGED, "warp"),
        split=block.word("split", SPLIT, "role"),
        registers=_parse_registers(block, mma),
        scheduler=scheduler,
        uses_mma=mma,
        span=block.span,
        spans=tuple(sorted(block.value_spans.items())),
        **bodies,
    )


def _parse_registers(block: Block, mma: bool) -> Registers:
    least = Expr("24")
    inner = block.block("registers", REGISTERS_KEYS)
    if inner is None:
        return Registers(least, least, least)
    if mma:
        inner.require(
            "entry",
            "which issues wgmma",
            "add `entry: N // 2 + 26`, the measured count for m64nN with an f32 accumulator",
        )
    least = inner.expr("min", COMPILE_TIME) or least
    want = inner.expr("want", COMPILE_TIME) or least
    # Without wgmma any entry count compiles: setmaxnreg raises it before the role starts.
    entry = inner.expr("entry", COMPILE_TIME) or Expr("24")
    probed = "min" not in inner or inner.is_derived("min")
    return Registers(least, want, entry, inner.span, probed)
