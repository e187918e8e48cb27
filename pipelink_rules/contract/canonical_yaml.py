"""How is data written as YAML that is readable, and the same bytes everywhere?  JSON data -> text.

Mappings are sorted; every scalar that is not a plain word is JSON, which YAML reads alike.
"""

from __future__ import annotations

import json
import re
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_WORDS = frozenset(
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"]
)  # YAML 1.1 reads these


def canonical_yaml(data: dict[str, Any], order: tuple[str, ...] = ()) -> str:
    """The text of a mapping; `order` puts some of its keys first."""
    lines: list[str] = []
    for key in (*order, *sorted(set(data) - set(order))):
        _emit(lines, 0, f"{_scalar(key)}:", data[key])
    return "\n".join(lines) + "\n"


def _emit(lines: list[str], depth: int, head: str, value: Any, dash: str = "") -> None:
    """Lines of `head` and its value; after a dash the contents are two columns further in."""
    pad = "  " * depth + dash
    inner = depth + 1 + (len(dash) // 2)
    if isinstance(value, dict) and value:
        lines.append(pad + head)
        for key in sorted(value):
            _emit(lines, inner, f"{_scalar(key)}:", value[key])
    elif isinstance(value, list) and value:
        flow = _flow(value)
        if flow is not None and len(pad) + len(head) + len(flow) < 100:
            lines.append(f"{pad}{head} {flow}")
            return
        lines.append(pad + head)
        for item in value:
            _emit_item(lines, inner, item)
    else:
        lines.append(f"{pad}{head} {_scalar(value)}")


def _emit_item(lines: list[str], depth: int, item: Any) -> None:
    if isinstance(item, dict) and item:
        first, *rest = sorted(item)
        _emit(lines, depth, f"{_scalar(first)}:", item[first], dash="- ")
        for key in rest:
            _emit(lines, depth + 1, f"{_scalar(key)}:", item[key])
    else:
        _emit(lines, depth, "-", item)


def _flow(value: list[Any]) -> str | None:
    """A short list on one line; None where it holds mappings of more than one key."""
    parts = []
    for item in value:
        if isinstance(item, dict) and len(item) > 1:
            return None
        if isinstance(item, dict) and item:
            ((key, inner),) = item.items()
            part = (
                None if isinstance(inner, (dict, list)) else f"{{{_scalar(key)}: {_scalar(inner)}}}"
            )
        else:
            part = _flow(item) if isinstance(item, list) and item else _scalar(item)
        if part is None:
            return None
        parts.append(part)
    return f"[{', '.join(parts)}]"


def _scalar(value: Any) -> str:
    if value in ({}, []) and not isinstance(value, (bool, int, str)):
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_WORDS:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
