"""What of a program or a variant decides the machine code?  All but places and prose.

Glue and link depend on this and on nothing else of the program, so a comment, a moved line or a
new summary in a contract or a declaration reaches the messages, the manifest and the map, and
compiles and links nothing.
"""

from __future__ import annotations

import dataclasses
from typing import TypeVar

Noun = TypeVar("Noun")
# field name -> what it is without places and prose
_BLANK: dict[str, object] = {"span": None, "spans": (), "summary": "", "file": "", "prebuilt": ""}


def strip_locations(noun: Noun) -> Noun:
    """A program or variant with every span, summary, file name and origin left out."""
    return _strip(noun)


def _strip(noun: Noun) -> Noun:
    if isinstance(noun, tuple):
        return type(noun)(_strip(item) for item in noun)
    if not dataclasses.is_dataclass(noun) or isinstance(noun, type):
        return noun
    changes = {}
    for item in dataclasses.fields(noun):
        value = getattr(noun, item.name)
        if item.name in _BLANK:
            changes[item.name] = _BLANK[item.name]
        elif isinstance(value, tuple) or dataclasses.is_dataclass(value):
            changes[item.name] = _strip(value)
    return dataclasses.replace(noun, **changes)
