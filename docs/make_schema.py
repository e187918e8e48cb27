"""Write the JSON Schema of contracts, from the tables that the parsers use.

    python docs/make_schema.py

Editors complete and describe clauses with it.  It knows which clauses there are and of which type;
what depends on other clauses (a derived space or direction) is checked when a contract is read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pipelink_rules.contract import (  # noqa: E402
    load,
    parse_operations,
    parse_params,
    parse_ports,
)
from pipelink_rules.contract.derive import SPACE_MARKS  # noqa: E402
from pipelink_rules.model.contract import DTYPES  # noqa: E402
from pipelink_rules.model.operation import VERBS  # noqa: E402
from pipelink_rules.model.target import TARGETS  # noqa: E402

PAGE = ROOT / "pipelink_rules/contract/contract.schema.json"

Schema = dict[str, Any]
NAME = {"pattern": "^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$", "maxLength": 48}
LARGEST = 2**31 - 1
EXPRESSION: Schema = {"$ref": "#/$defs/expression"}
REFERENCE: Schema = {"$ref": "#/$defs/name"}
DTYPE: Schema = {"$ref": "#/$defs/dtype"}
BODY: Schema = {"$ref": "#/$defs/body"}
BOOLEAN: Schema = {"type": "boolean"}

# Clauses that the reader requires and no derivation can supply, by space of a port.
ALWAYS = {"ring": ("item",), "scalar": ("type",), "counter": ("scope",)}


def _about(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def _words(*words: Any) -> Schema:
    return {"enum": list(words)}


def _list(of: Schema, least: int = 1, most: int | None = None) -> Schema:
    limits = {"minItems": least} | ({"maxItems": most} if most else {})
    return {"type": "array", **limits, "items": of}


def _integer(least: int, most: int = LARGEST) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


LAYOUT: dict[str, Schema] = {
    "dtype": DTYPE,
    "shape": _about(_list(EXPRESSION), "Extents, slowest first."),
    "strides": {"$ref": "#/$defs/strides"},
    "swizzle": _about(
        {"anyOf": [_words(*parse_ports.SWIZZLES), EXPRESSION]},
        "Swizzle span in bytes: 0, 32, 64 or 128, the length of a row. Default 0.",
    ),
}


def _table(
    properties: Mapping[str, Schema], keys: Iterable[str], required: Iterable[str] = (), **more: Any
) -> Schema:
    """An object with exactly the clauses of a parser's table."""
    missing = set(keys) ^ set(properties)
    if missing:
        raise ValueError(f"clauses without a schema, or schemas without a clause: {missing}")
    needed = {"required": list(required)} if required else {}
    rows = {key: properties[key] for key in keys}
    return {"type": "object", "additionalProperties": False, "properties": rows, **needed, **more}


def _named(of: Schema, description: str, **more: Any) -> Schema:
    return {
        "type": "object",
        "propertyNames": NAME,
        "additionalProperties": of,
        "description": description,
        **more,
    }


def _required(keys: Mapping[str, bool]) -> list[str]:
    return [key for key, needed in keys.items() if needed]


def contract_schema() -> Schema:
    """The whole schema."""
    properties: dict[str, Schema] = {
        "contract": {"const": load.SCHEMA_VERSION, "description": "Version of the language."},
        "component": _about(REFERENCE, "Name; the file is `<component>.contract.yaml`."),
        "version": {
            "type": ["string", "number"],
            "pattern": f"^{load.VERSION.pattern}$",
            "description": "Version of the component. Default 1.0.0.",
        },
        "summary": {
            "type": ["string", "number", "boolean"],
            "minLength": 1,
            "description": "One sentence: what it does.",
        },
        "arch": _about(
            _list(_words(*TARGETS)),
            "Targets. Derived: sm_90a with wgmma or its fragments, sm_100a with tensor memory.",
        ),
        "params": _named({"$ref": "#/$defs/param"}, "Compile-time parameters."),
        "symbols": _named({"$ref": "#/$defs/symbol"}, "Launch-time integers, from tensor shapes."),
        "where": _about(_list(EXPRESSION, 0), "Conditions on parameters."),
        "work": {"oneOf": [REFERENCE, {"$ref": "#/$defs/work"}]},
        "roles": _named(
            {"$ref": "#/$defs/role"}, "Sets of warps, one entry each.", minProperties=1
        ),
        "ports": _named({"$ref": "#/$defs/port"}, "Typed endpoints: where data enters or leaves."),
        "buffers": _named({"$ref": "#/$defs/buffer"}, "Private shared memory."),
        "named_barriers": _named({"$ref": "#/$defs/named_barrier"}, "Named barriers of the SM."),
        "numeric": {"$ref": "#/$defs/numeric"},
        "requires": _about(_list(EXPRESSION, 0), "Conditions on symbols, checked at launch."),
        "coresident": _about(_words("grid"), "It waits for other CTAs: all must be resident."),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:pipelink:contract:{load.SCHEMA_VERSION}",
        "title": f"PipeLink contract, version {load.SCHEMA_VERSION}",
        "description": "The interface of a component. A clause that is not required is derived "
        "from the others or has the default that is named; a written one is checked.",
        **_table(properties, load.KEYS, [key for key in _required(load.KEYS) if key != "arch"]),
        "$defs": {
            "name": {"type": "string", **NAME},
            "expression": {
                "type": ["integer", "string"],
                "minLength": 1,
                "description": "Integers, names, + - * // %, comparisons, and/or/not, "
                "ceildiv(a, b), min, max, sizeof(dtype).",
            },
            "dtype": {
                "type": "string",
                "pattern": "^[A-Za-z][A-Za-z0-9_]*$",
                "description": f"{', '.join(DTYPES)}, or a parameter of type dtype.",
                "examples": list(DTYPES),
            },
            "param": _param(),
            "symbol": _table(
                {
                    "min": _about(_integer(0), "Smallest value at launch. Default 0."),
                    "max": _about(_integer(0), f"Largest value at launch. Default {LARGEST}."),
                    "multiple_of": _about(
                        _integer(1), "Every value at launch is a multiple. Default 1."
                    ),
                },
                parse_params.SYMBOL_KEYS,
            ),
            "work": _work(),
            "role": _role(),
            "body": _list({"oneOf": [{"$ref": "#/$defs/operation"}, {"$ref": "#/$defs/repeat"}]}),
            "operation": _operation(),
            "repeat": _table(
                {
                    "repeat": _about(EXPRESSION, "How often, over parameters and work fields."),
                    "body": BODY,
                },
                parse_operations.REPEAT_KEYS,
                _required(parse_operations.REPEAT_KEYS),
            ),
            "tile": _table(LAYOUT, parse_ports.MEMBER_KEYS, _required(parse_ports.MEMBER_KEYS)),
            "strides": {
                **_list({"oneOf": [EXPRESSION, _list(_list(EXPRESSION, 2, 2))]}),
                "description": "In elements, one a mode; a nested mode is a list of [extent, "
                "stride] pairs, innermost first. Default: row-major.",
            },
            "port": _port(),
            "buffer": _table(
                {
                    "role": _about(REFERENCE, "The role that uses it. Derived."),
                    "bytes": _about(
                        EXPRESSION, "Of all stages together. Derived from a store's box."
                    ),
                    "align": _about(_words(*parse_ports.ALIGNMENTS), "In bytes. Derived, else 16."),
                    "stages": _about(
                        _integer(1, parse_ports.MOST_STAGES), "Used in turn. Default 1."
                    ),
                },
                parse_ports.BUFFER_KEYS,
            ),
            "named_barrier": _table(
                {
                    "roles": _about(_list(REFERENCE), "Roles that arrive at it. Derived."),
                    "count": _about(EXPRESSION, "Threads, a multiple of 32. Derived."),
                },
                parse_ports.BARRIER_KEYS,
            ),
            "numeric": _numeric(),
        },
    }


def _param() -> Schema:
    value: Schema = {"type": ["integer", "string"]}
    properties = {
        "type": _about(_words("int", "dtype"), "Type of the value."),
        "in": _about(_list(value), "The allowed values. Default: any."),
        "min": _about({"type": "integer"}, "Smallest allowed value."),
        "max": _about({"type": "integer"}, "Largest allowed value."),
        "multiple_of": _about(_integer(1), "Every value is a multiple of it. Default 1."),
        "default": _about(value, "Value where an instance gives none and none can be inferred."),
    }
    dtype = {"properties": {"type": {"const": "dtype"}}, "required": ["type"]}
    numbers = {"properties": dict.fromkeys(("min", "max", "multiple_of"), False)}
    keys = parse_params.PARAM_KEYS
    return _table(properties, keys, _required(keys)) | {"if": dtype, "then": numbers}


def _work() -> Schema:
    within = _table(
        {
            "field": _about(REFERENCE, "The field whose work tiles are numbered."),
            "of": _about(EXPRESSION, "How many work tiles each value of it has."),
        },
        parse_params.WITHIN_KEYS,
        _required(parse_params.WITHIN_KEYS),
    )
    field = _table(
        {
            "value": _about(EXPRESSION, "Scheduler: the same for every work tile, over symbols."),
            "min": _about(EXPRESSION, "Smallest value. Default 0."),
            "max": _about(EXPRESSION, "Largest value."),
            "multiple_of": _about(EXPRESSION, "Every value is a multiple of it."),
            "default": _about(EXPRESSION, "Value where the tile scheduler has no such field."),
            "index_within": _about(within, "Numbers 0, 1, ... the work tiles of one value."),
            "along": _about(
                _list(_words(*parse_params.AXES)), "Scheduler: cluster axes along which it varies."
            ),
        },
        parse_params.FIELD_KEYS,
    )
    fields = {
        "oneOf": [_named(field, "With clauses."), _list(REFERENCE, 0)],
        "description": "Fields of a work tile that the component uses; clauses of the kind's file.",
    }
    properties = {
        "kind": _about(REFERENCE, "Kind of work; its file is `kinds/<kind>.yaml`."),
        "direction": _about(
            _words(*parse_ports.DIRECTIONS), "in: processes tiles; out: a tile scheduler."
        ),
        "tile": _about(_list(EXPRESSION), "Extents that all components agree on; of the kind."),
        "tiles": _about(EXPRESSION, "Scheduler: number of work tiles, over symbols."),
        "cluster": _about(_list(EXPRESSION, 2, 2), "Scheduler: CTAs along x and y of a cluster."),
        "fields": fields,
        "where": _about(_list(EXPRESSION, 0), "What fields and symbols of every tile meet."),
    }
    keys = parse_params.WORK_KEYS
    return _table(properties, keys, ["kind"], description="The work tile of every role.")


def _role() -> Schema:
    registers = _table(
        {
            "min": _about(EXPRESSION, "Per thread, without spills. Default: measured."),
            "want": _about(EXPRESSION, "More brings nothing. Default min, else 240 or 40."),
            "entry": _about(EXPRESSION, "At kernel entry. Derived for wgmma: N // 2 + 26."),
        },
        parse_operations.REGISTERS_KEYS,
    )
    properties = {
        "scheduler": _about(BOOLEAN, "Computes the work tile; runs inside the other roles."),
        "warps": _about(EXPRESSION, "Warps. Derived from a fragment: rows // 16."),
        "converged": _about(
            _words(*parse_operations.CONVERGED), "Threads that call runtime operations together."
        ),
        "split": _about(_words(*parse_operations.SPLIT), "How far its warps are independent."),
        "registers": registers,
        "prologue": _about(BODY, "Operations before the first work tile."),
        "body": _about(BODY, "Operations of a work tile."),
        "epilogue": _about(BODY, "Operations after the last work tile."),
    }
    scheduler = {"properties": {"scheduler": {"const": True}}, "required": ["scheduler"]}
    others = {"properties": {key: False for key in properties if key != "scheduler"}}
    rule = {"if": scheduler, "then": others, "else": {"required": ["body"]}}
    return _table(properties, parse_operations.ROLE_KEYS) | rule


def _operation() -> Schema:
    name, index = "[A-Za-z_][A-Za-z0-9_]*", r"( ?\[[^\[\]]*\])?"
    forms = (
        rf"copy {name}{index} ?-> ?{name}\.{name}",
        "await mma [0-9]+",
        "await tensor (load|store)",
        "await store [0-9]+( full)?",
        f"release {name}( lag [0-9]+)?",
        f"store {name} ?-> ?{name}{index}",
        "fence (async|global|tensor before|tensor after)",
        f"mma {name} ?-> ?{name}",
        f"commit mma ?-> ?{name}",
        f"wait_until {name}{index} .+",
        f"(acquire|expect|write|commit|wait|read|mma|sync|arrive|signal) {name}{index}",
    )
    known = "; ".join(form for form, _ in VERBS.values())
    return {"type": "string", "pattern": f"^({'|'.join(forms)})$", "description": known}


def _port() -> Schema:
    tile = _table(
        {
            "box": _about(_list(EXPRESSION, 1, 5), "One copy, in elements. Derived from the ring."),
            "swizzle": LAYOUT["swizzle"],
            "along": _about(_list(REFERENCE, 0), "Work fields that the coordinates depend on."),
        },
        parse_ports.TILE_KEYS,
    )
    stage = _integer(1, parse_ports.MOST_STAGES)
    stages = _table({"min": stage, "max": stage}, parse_ports.STAGES_KEYS)
    item = _named({"$ref": "#/$defs/tile"}, "The tiles of one item, in order.", minProperties=1)
    properties = {
        "space": _about(_words(*parse_ports.SPACES), "Where the data is. Derived."),
        "direction": _about(_words(*parse_ports.DIRECTIONS), "Derived from the operations."),
        "role": _about(REFERENCE, "The role that uses it. Derived."),
        "item": item,
        "rate": _about(EXPRESSION, "Items per work tile. Derived from the repeats."),
        "proxy": _about(_words(*parse_ports.PROXIES), "async: TMA or tensor core. Derived."),
        "arrivals": _about(EXPRESSION, "Per item, or per signal. Derived: one a warp."),
        "tx_bytes": _about(EXPRESSION, "Bytes that a producer expects per item. Derived."),
        "written": _about(EXPRESSION, "Bytes of an item that are written. Default: all."),
        "stages": _about(stages, "Stages that placement may choose. Default 1 to 8."),
        "raw": _about(BOOLEAN, "The component issues its own copies and barrier operations."),
        "fragment": _about(_words(*parse_ports.FRAGMENTS), "Accumulator of wgmma m64nNk16."),
        "in_place": _about(REFERENCE, "The in port whose registers an out port keeps."),
        "pending": _about(_integer(0, 16), "wgmma groups in flight at the hand-over. Default 0."),
        "dtype": _about(DTYPE, "Element type; f32 for fragments."),
        "shape": LAYOUT["shape"],
        "strides": LAYOUT["strides"],
        "tile": _about(tile, "Reached through a tensor map. Derived where the tile is swizzled."),
        "at": _about(
            _list(EXPRESSION),
            "Coordinates of each copy or store, over work fields, symbols, `trip` (turns of the "
            "innermost repeat) and `warp` (of the role).",
        ),
        "align": _about(_words(*parse_ports.ALIGNMENTS), "Of the base, in bytes. Default 16."),
        "scratch": _about(BOOLEAN, "Memory of the launcher between components of the kernel."),
        "init": _about(_words(*parse_ports.INITS), "Scratch: its contents at launch."),
        "count": _about(EXPRESSION, "Counters in the array, over symbols."),
        "scope": _about(_words(*parse_ports.SCOPES), "Threads that a counter synchronizes."),
        "type": _about(_words(*parse_ports.SCALARS), "Type of a scalar."),
    }
    rules = [_space_rule(space, marks) for space, marks in SPACE_MARKS]
    rules += [_written_rule(space) for space in parse_ports.SPACES]
    return {**_table(properties, parse_ports.CLAUSES), "allOf": rules}


def _space_rule(space: str, marks: tuple[str, ...]) -> Schema:
    """A clause that only one space has decides the space, unless it is written."""
    place = [other for other, _ in SPACE_MARKS].index(space)
    before = [mark for _, others in SPACE_MARKS[:place] for mark in others]
    marked = {"anyOf": [{"required": [mark]} for mark in marks]}
    none = {"not": {"anyOf": [{"required": [mark]} for mark in ("space", *before)]}}
    return {"if": {"allOf": [marked, none]}, "then": _only(space)}


def _written_rule(space: str) -> Schema:
    written = {"properties": {"space": {"const": space}}, "required": ["space"]}
    return {"if": written, "then": {**_only(space), "required": list(ALWAYS.get(space, ()))}}


def _only(space: str) -> Schema:
    foreign = [clause for clause, spaces in parse_ports.CLAUSES.items() if space not in spaces]
    return {"properties": dict.fromkeys(foreign, False)}


def _numeric() -> Schema:
    flags = _table(dict.fromkeys(parse_params.CODEGEN_FLAGS, BOOLEAN), parse_params.FLAG_KEYS)
    properties = {
        "accumulate": _about(DTYPE, "Dtype of sums. Derived with fragments: f32."),
        "rounds_to": _about(DTYPE, "Dtype of results."),
        "deterministic": _about(BOOLEAN, "Equal inputs give equal bits. Default true."),
        "nan": _about(_words(*parse_params.NAN), "NaN policy. Default propagate."),
        "flags": _about(flags, "Code-generation flags that it requires."),
    }
    description = "The numerical contract."
    return _table(properties, parse_params.NUMERIC_KEYS, description=description)


if __name__ == "__main__":
    PAGE.write_text(json.dumps(contract_schema(), indent=1) + "\n", encoding="utf-8")
