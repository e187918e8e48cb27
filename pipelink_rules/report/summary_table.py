"""The table at the end of a build: one line per megakernel and target."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.text_table import format_table, output_width
from pipelink_rules.files.codec import read_json
from pipelink_rules.model.linked_kernel import Audit, Manifest, TwinReport
from pipelink_rules.report.allowed import allowed_lines

COLUMNS = (
    "megakernel",
    "target",
    "shared bytes",
    "stages",
    "registers",
    "barriers",
    "instructions",
    "twin",
    "link seconds",
)
_LEAST = 100  # columns
_RIGHT = {
    COLUMNS.index(name) for name in ("shared bytes", "barriers", "instructions", "link seconds")
}


def table_of_folders(
    folders: Iterable[tuple[str, str, str, float | None]], width: int | None = None
) -> str:
    """The table of (folder, target, name, seconds of the last link or None for the cache)."""
    rows, lines = [], []
    for folder, target, name, seconds in folders:
        manifest = read_json(Path(folder) / f"{name}.manifest.json", Manifest)
        spent = "cached" if seconds is None else f"{seconds:.2f}"
        row = {**dict(manifest.report), "twin": twin_of(folder, name)}
        if manifest.allowed:
            row["megakernel"] = f"{manifest.name} (allowed errors)"
        rows.append(row | {"target": target, "link seconds": spent})
        lines += allowed_lines(manifest.allowed, f"{name} ({target}): ")
    return render_table(rows, width) + "".join(f"{line}\n" for line in lines)


def twin_of(folder: str | Path, name: str) -> str:
    """Return `identical`, `differs` or `not built`: the link compared with its LTO twin.

    A twin older than the cubin it was compared with says nothing about the present one.
    """
    try:
        twin = read_json(Path(folder) / f"{name}.twin.json", TwinReport)
        audit = read_json(Path(folder) / f"{name}.audit.json", Audit)
        if twin.linked.text_sha256 != audit.text_sha256:
            return "not built"
        return "identical" if twin.lto_identical else "differs"
    except PipelinkError:
        return "not built"


def render_table(rows: Iterable[Mapping[str, str]], width: int | None = None) -> str:
    """Return text of the table; as wide as the terminal, or as its content where there is none."""
    words = ([row.get(name, "-") for name in COLUMNS] for row in rows)
    cells = ([f"{int(word):,}" if word.isdigit() else word for word in row] for row in words)
    wide = width or output_width(least=_LEAST)
    lines = format_table(COLUMNS, cells, " ", right=_RIGHT, rule=True, width=wide)
    return "".join(f"{line}\n" for line in lines)
