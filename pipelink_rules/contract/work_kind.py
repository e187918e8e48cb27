"""The work kinds: what all components that process one kind of work tile agree on.

A kind is a file `kinds/<kind>.yaml` beside the components or above them, else among the components
that come with PipeLink: the parameters that make up the tile, and the fields of a work tile.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pipelink_rules.contract.yaml_tree import MappingNode, parse_yaml, read_text
from pipelink_rules.files.installed_files import shipped

FOLDER = "kinds"
HIGHEST = 6  # folders above the contract that are searched


@dataclass(frozen=True)
class WorkKind:
    """One kind of work tile."""

    name: str
    tile: dict[str, MappingNode]  # parameter -> its clauses
    fields: dict[str, MappingNode]  # field -> its clauses


def find_kind(name: str, contract: str) -> WorkKind | None:
    """Return the kind of that name for a contract file, None where no file declares it."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,80}", name):
        return None
    for folder in _folders(contract):
        path = folder / FOLDER / f"{name}.yaml"
        try:
            if path.is_file():
                return _read(path, path.stat().st_mtime_ns)
        except OSError:
            continue
    return None


def _folders(contract: str) -> Iterator[Path]:
    with contextlib.suppress(OSError, ValueError):
        yield from list(Path(contract).absolute().parents)[:HIGHEST]
    yield shipped("components")


@lru_cache(maxsize=64)
def _read(path: Path, changed: int) -> WorkKind:
    nodes = parse_yaml(read_text(path, str(path)), str(path))
    return WorkKind(path.stem, _inner(nodes, "tile"), _inner(nodes, "fields"))


def _inner(nodes: object, key: str) -> dict[str, MappingNode]:
    entries = nodes.entries if isinstance(nodes, MappingNode) else ()
    table = next((value for name, value in entries if name.text == key), None)
    inner = table.entries if isinstance(table, MappingNode) else ()
    return {name.text: value for name, value in inner if isinstance(value, MappingNode)}
