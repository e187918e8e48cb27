"""Contract mismatches: components with one clause of the contract or one line of source changed.

`corpus.yaml` lists them, and edits that match the contract; `variants.yaml` lists more of each
kind, and `known_gaps.yaml` mismatches that the audit did not report, or does not report yet.
Edited components are the shipped ones and those of `raw/`, whose barrier and copy instructions
bypass the runtime.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

GEMM: dict[str, int | str] = {"TM": 128, "TN": 128, "TK": 64}
ARGUMENTS: dict[str, dict[str, int | str]] = {
    "gemm/tma_load_ab": GEMM,
    "gemm/wgmma_mainloop": {"TM": 128, "TN": 64, "TK": 64, "WG": 2},
    "gemm/tcgen05_mainloop": GEMM,
    "epilogue/tensor_store": GEMM,
    "epilogue/bias": GEMM,
    "epilogue/gelu": GEMM,
    "epilogue/gelu_tanh": GEMM,
    "epilogue/relu": GEMM,
    "epilogue/residual": GEMM,
    "epilogue/silu_mul": GEMM,
    "epilogue/tma_store": {**GEMM, "TN": 192},
    "epilogue/pair_store": {"TM": 64, "TN": 48, "TK": 64},
    "epilogue/transposed_store": {"TM": 64, "TN": 96, "TK": 64, "P": 32},
    "epilogue/split_k_store": {**GEMM, "PARTS": 4},
    "scheduler/persistent_tiles": GEMM,
    "scheduler/cluster_tiles": {**GEMM, "CM": 2, "CN": 2},
    "scheduler/row_blocks": {"ROWS": 4},
    "scheduler/split_k_tiles": {**GEMM, "PARTS": 3},
    "stream/bulk_load_rows": {"ROWS": 4, "D": 256},
    "stream/bulk_store_rows": {"ROWS": 4, "D": 256},
    "stream/rms_norm": {"ROWS": 4, "D": 256},
    "stream/rms_norm_wide": {"ROWS": 1, "D": 2048, "WARPS": 8},
    "stream/scaled_add": {"ROWS": 4, "D": 256},
    "raw/raw_load_ab": GEMM,
    "raw/raw_mainloop": {"TM": 128, "TN": 64, "TK": 64, "WG": 2},
    "raw/raw_double_rows": {"ROWS": 4, "D": 256},
    "raw/raw_store_rows": {"ROWS": 4, "D": 256},
}
HERE = Path(__file__).parent


def source_of(component: str, repository: Path) -> Path:
    """The source of a shipped component, or of one of `raw/` here; its contract is next to it."""
    root = HERE if component.startswith("raw/") else repository / "components"
    return root / f"{component}.cu"


def contract_of(component: str, repository: Path) -> Path:
    """Its contract."""
    return source_of(component, repository).with_suffix(".contract.yaml")


@dataclass(frozen=True)
class Edit:
    """Text that is replaced: its first occurrence, of a known number."""

    old: str
    new: str
    of: int = 1

    def apply(self, text: str) -> str:
        """The text with the edit; AssertionError where it does not fit."""
        found = text.count(self.old)
        assert found == self.of, f"{self.old!r} occurs {found} times, not {self.of}"
        return text.replace(self.old, self.new, 1)


def apply_all(edits: tuple[Edit, ...], path: Path) -> str:
    """The text of a file with the edits."""
    text = path.read_text(encoding="utf-8")
    for edit in edits:
        text = edit.apply(text)
    return text


@dataclass(frozen=True)
class Row:
    """One edited component and what the audit makes of it."""

    component: str  # "stream/rms_norm"
    name: str
    code: str  # "" = none
    source: tuple[Edit, ...] = ()
    contract: tuple[Edit, ...] = ()
    caught: bool = True

    @property
    def label(self) -> str:
        """`rms_norm: no fence before release (source)`."""
        stem = self.component.partition("/")[2]
        return f"{stem}: {self.name}" + (" (source)" if self.source else "")


def _read(name: str) -> dict[str, tuple[Row, ...]]:
    """Section of a file -> its rows."""
    sections = yaml.safe_load((HERE / name).read_text(encoding="utf-8"))
    return {
        section: tuple(
            _row(component, section, row) for component, rows in listed.items() for row in rows
        )
        for section, listed in sections.items()
    }


def _row(component: str, section: str, row: dict[str, Any]) -> Row:
    edits = (
        Edit(row["old"], row["new"], row.get("of", 1)),
        *(Edit(*e) for e in row.get("and", ())),
    )
    also = (Edit(*row["contract"]),) if "contract" in row else ()
    return Row(
        component,
        row["name"],
        row.get("code", ""),
        source=() if section == "contract" else edits,
        contract=edits if section == "contract" else also,
        caught=row.get("caught", True),
    )


_CORPUS, _VARIANTS = _read("corpus.yaml"), _read("variants.yaml")
MISMATCHES = _CORPUS["contract"] + _CORPUS["source"] + _VARIANTS["source"]
HARMLESS = _CORPUS["harmless"] + _VARIANTS["harmless"]
STILL_PROVED = _VARIANTS["proved"]
GAPS = _read("known_gaps.yaml")["source"]
ROWS = MISMATCHES + HARMLESS + STILL_PROVED + GAPS
SOURCES = tuple(row for row in ROWS if row.source)
