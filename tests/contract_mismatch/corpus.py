"""Components that lie: honest ones with one clause or one line of source changed.

`corpus.yaml` lists them, and changes that are harmless.  The honest ones are the shipped
components, and those of `raw/`, which issue barrier and copy instructions of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
    "raw/own_load_ab": GEMM,
    "raw/own_mainloop": {"TM": 128, "TN": 64, "TK": 64, "WG": 2},
    "raw/own_double_rows": {"ROWS": 4, "D": 256},
    "raw/own_store_rows": {"ROWS": 4, "D": 256},
}
HERE = Path(__file__).parent


def source_of(component: str, repository: Path) -> Path:
    """The source of a shipped component, or of one of `raw/` here; its contract lies beside it."""
    root = HERE if component.startswith("raw/") else repository / "components"
    return root / f"{component}.cu"


def contract_of(component: str, repository: Path) -> Path:
    """Its contract."""
    return source_of(component, repository).with_suffix(".contract.yaml")


@dataclass(frozen=True)
class Lie:
    """One component that breaks one clause."""

    component: str  # "stream/rms_norm"
    name: str
    code: str  # "" = it is none
    old: str
    new: str
    source: bool = False  # the source is edited, not the contract

    @property
    def label(self) -> str:
        """`rms_norm: no fence before release (source)`."""
        stem = self.component.partition("/")[2]
        return f"{stem}: {self.name}" + (" (source)" if self.source else "")


def _read() -> tuple[Lie, ...]:
    rows = yaml.safe_load((HERE / "corpus.yaml").read_text(encoding="utf-8"))
    return tuple(
        Lie(component, row["name"], row.get("code", ""), row["old"], row["new"], kind != "contract")
        for kind, components in rows.items()
        for component, listed in components.items()
        for row in listed
    )


_ALL = _read()
LIES = tuple(lie for lie in _ALL if lie.code)
HARMLESS = tuple(lie for lie in _ALL if not lie.code)
SOURCES = tuple(lie for lie in _ALL if lie.source)
