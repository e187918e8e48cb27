"""The SCons scanner: declared headers that are reachable from a source by `#include` lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from SCons.Scanner import ScannerBase

from pipelink_rules.actions.header_deps import includes_of, resolve


@dataclass(frozen=True)
class Scope:
    """What a source may include: absolute -I folders in order, and declared headers by path."""

    roots: tuple[str, ...]
    declared: dict[str, Any]  # absolute path -> node


def scanner() -> Any:
    """Finds only declared headers: the generated one is written by the compile step itself, and
    the compiler's own list of headers is checked after the compile."""
    return ScannerBase(_scan, name="PipelinkHeaders", path_function=_scope_of, recursive=True)


def _scope_of(env: Any, folder: Any, target: Any = None, source: Any = None) -> tuple[str, ...]:
    """The key of the scope: SCons keeps what it found under it."""
    first = target[0] if isinstance(target, (list, tuple)) else target
    return (str(first),)


def _scan(node: Any, env: Any, path: tuple[str, ...]) -> list[Any]:
    scope: Scope | None = env["PIPELINK"].scopes.get(path[0]) if path else None
    if scope is None or not node.exists():
        return []
    text, folder = node.get_text_contents(), node.get_dir().abspath
    found = (
        resolve(name, quoted, folder, scope.roots, scope.declared)
        for name, quoted in includes_of(text)
    )
    return [scope.declared[name] for name in dict.fromkeys(found) if name]
