"""Parsers of parameters, symbols, work tiles and the numerical contract: Block -> noun."""

from pipelink_rules.contract.block_parser import LARGEST, Block, clauses
from pipelink_rules.contract.parse_ports import COMPILE_TIME, DIRECTIONS, LAUNCH_TIME
from pipelink_rules.contract.yaml_tree import ScalarNode
from pipelink_rules.model.contract import DTYPES, Numeric, Param, Symbol, Work, WorkField
from pipelink_rules.model.source_span import Expr

NAN = ("propagate", "max_num")
CODEGEN_FLAGS = ("ftz", "prec-div", "prec-sqrt", "fmad")

PARAM_KEYS = clauses("type* in min max multiple_of default")
SYMBOL_KEYS = clauses("min max multiple_of")
WORK_KEYS = clauses("kind* direction* tile* tiles cluster fields* where")
FIELD_KEYS = clauses("value min max multiple_of default index_within along")
WITHIN_KEYS = clauses("field* of*")
AXES = ("x", "y")  # of a cluster
NUMERIC_KEYS = clauses("accumulate rounds_to deterministic nan flags")
FLAG_KEYS = dict.fromkeys(CODEGEN_FLAGS, False)


def parse_param(name: str, block: Block) -> Param:
    kind = block.word("type", ("int", "dtype"), "")
    if kind == "dtype":
        for key in ("min", "max", "multiple_of"):
            block.refuse(key, "it is a dtype")
    choices = tuple(
        value
        for node in block.words("in", "values")
        if (value := _value(block, node, kind)) is not None
    )
    numbers = kind != "dtype"
    least = block.integer("min", -LARGEST, -LARGEST) if "min" in block and numbers else None
    most = block.integer("max", LARGEST, -LARGEST) if "max" in block and numbers else None
    step = block.integer("multiple_of", 1, 1) if "multiple_of" in block and numbers else None
    node = block.scalar("default", "a value")
    default = _value(block, node, kind) if node else None
    param = Param(name, kind, choices, least, most, step, default, block.span)
    if node is not None and default is not None and (reason := violated_limit(param, default)):
        message = f"invalid value {default} for {block.named('default')}"
        block.invalid(node.span, message, reason, default)
    return param


def _value(block: Block, node: ScalarNode, kind: str) -> int | str | None:
    if kind == "int":
        value = block.number(node, f"a value of {block.what}", -1, -LARGEST)
        return value if node.text == str(value) else None
    if kind == "dtype" and node.text not in DTYPES:
        block.unknown_value(node, block.what, "one of " + ", ".join(DTYPES), DTYPES)
        return None
    return node.text


def violated_limit(param: Param, value: int | str) -> str:
    """Return the limit of the parameter that the value violates, "" where there is none."""
    if param.choices and value not in param.choices:
        return "one of " + ", ".join(map(str, param.choices))
    if isinstance(value, str):
        return ""
    if param.minimum is not None and value < param.minimum:
        return f"at least {param.minimum}"
    if param.maximum is not None and value > param.maximum:
        return f"at most {param.maximum}"
    if param.multiple_of is not None and value % param.multiple_of:
        return f"a multiple of {param.multiple_of}"
    return ""


def parse_symbol(name: str, block: Block) -> Symbol:
    least = block.integer("min", 0, 0)
    most = block.integer("max", LARGEST, 0)
    if most < least:
        block.empty_range("max", block.what, least, most)
    return Symbol(name, least, most, block.integer("multiple_of", 1, 1), block.span)


def parse_work(top: Block) -> Work | None:
    block = top.block("work", WORK_KEYS)
    if block is None:
        return None
    direction = block.word("direction", DIRECTIONS, "")
    if direction == "in":
        block.refuse("tiles", "the tile scheduler declares the number of work tiles")
        block.refuse("cluster", "the tile scheduler declares the clusters that it supports")
    elif direction == "out":
        block.require("tiles", "which declares the number of work tiles of a tile scheduler")
    fields = []
    for name, inner in block.blocks("fields", FIELD_KEYS, "work field"):
        if direction == "in":
            inner.refuse("value", "the tile scheduler computes it")
            inner.refuse("along", "the tile scheduler declares the axes along which it varies")
        elif "cluster" not in block:
            reason = "the tile scheduler does not support clusters"
            inner.refuse("along", reason, "add `cluster` to `work`")
        if direction == "out":
            inner.refuse("default", "the tile scheduler computes it")
        if "value" in inner:
            inner.refuse("along", "its value is the same for all work tiles")
        fields.append(
            WorkField(
                name,
                inner.expr("value", LAUNCH_TIME),
                inner.expr("min", LAUNCH_TIME) or Expr("0"),
                inner.expr("max", LAUNCH_TIME),
                *_index_within(inner, name),
                along=_axes(inner),
                default=inner.expr("default", COMPILE_TIME),
                multiple_of=inner.expr("multiple_of", COMPILE_TIME),
                span=inner.span,
            )
        )
    names = [field.name for field in fields]
    for field in fields:
        if field.index_within and field.index_within not in names:
            where = f"`index_within` of work field `{field.name}`"
            top.sink.unknown("PL0016", "work field", field.index_within, where, field.span, names)
    kind = block.scalar("kind", "a word")
    if kind is not None:
        top.sink.check_identifier(kind, "work kind")
    return Work(
        kind.text if kind else "",
        direction,
        block.exprs("tile", COMPILE_TIME),
        tuple(fields),
        block.expr("tiles", LAUNCH_TIME),
        _cluster(block),
        block.exprs("where", (*LAUNCH_TIME, "field"), may_be_empty=True),
        block.span,
    )


def _index_within(block: Block, name: str) -> tuple[str, Expr | None]:
    """Parse `index_within: {field: tile, of: 4}`: the field whose work tiles it numbers."""
    inner = block.block("index_within", WITHIN_KEYS)
    if inner is None:
        return "", None
    block.refuse("value", "it varies from work tile to work tile")
    node = inner.scalar("field", "the name of a work field")
    if node is not None and node.text == name:
        block.wrong(node, "another field", block.named("index_within"))
    return node.text if node else "", inner.expr("of", COMPILE_TIME)


def _axes(block: Block) -> tuple[str, ...]:
    """`along` of a work field."""
    found = []
    for node in block.words("along", "axes of the cluster"):
        if node.text in AXES:
            found.append(node.text)
        else:
            block.unknown_value(node, block.named("along"), "one or more of " + ", ".join(AXES))
    return tuple(sorted(set(found)))


def _cluster(block: Block) -> tuple[Expr, ...]:
    """`cluster` of a tile scheduler."""
    found = block.exprs("cluster", COMPILE_TIME)
    if found and len(found) != len(AXES):
        block.wrong_extents("cluster", found, "2 extents: CTAs along x and y")
    return found


def parse_numeric(top: Block) -> Numeric:
    block = top.block("numeric", NUMERIC_KEYS)
    if block is None:
        return Numeric()
    flags = block.block("flags", FLAG_KEYS)
    return Numeric(
        block.dtype("accumulate"),
        block.dtype("rounds_to"),
        block.flag("deterministic", True),
        block.word("nan", NAN, "propagate"),
        tuple((key, flags.flag(key, False)) for key in CODEGEN_FLAGS if key in flags)
        if flags
        else (),
        block.span,
    )
