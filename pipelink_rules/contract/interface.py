"""What may the rest of the pipeline see of a variant?  Variant -> its interface, as canonical JSON.

Spans, summary and file names are left out, and measured registers are rounded up to 8: a comment, a
summary or a register more or less changes nothing that is built from the interface.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

from pipelink_rules.files.codec import to_json
from pipelink_rules.model.contract import round_registers
from pipelink_rules.model.variant import Variant


def interface_of(variant: Variant) -> Variant:
    """The variant as check, place and collect may see it."""
    measured = tuple(
        (
            role,
            replace(
                item, registers=round_registers(item.registers), entry=round_registers(item.entry)
            ),
        )
        for role, item in variant.measured
    )
    return replace(without_places(variant), measured=measured)


def dump_interface(variant: Variant) -> str:
    """`<component>.interface.json`; `files.codec.read_json(path, Variant)` reads it."""
    return to_json(interface_of(variant))


def without_places(variant: Variant) -> Variant:
    """The variant without spans, file names and summary: what a comment cannot change."""
    contract = _strip(variant.contract)
    return replace(variant, contract=replace(contract, summary="", file=""))


def _strip(noun: Any) -> Any:
    if isinstance(noun, tuple):
        return tuple(_strip(item) for item in noun)
    if not dataclasses.is_dataclass(noun):
        return noun
    changes: dict[str, Any] = {}
    for item in dataclasses.fields(noun):
        value = getattr(noun, item.name)
        if item.name == "span":
            changes[item.name] = None
        elif item.name == "spans":
            changes[item.name] = ()
        elif isinstance(value, tuple) or dataclasses.is_dataclass(value):
            changes[item.name] = _strip(value)
    return replace(noun, **changes)  # type: ignore[type-var]
