from pathlib import Path

from pipelink_rules.actions.header_deps import require_declared


def run() -> None:
    Path("unit.d").write_text(
        "scale.fatbin : scale.cu \\\n  scale.cuh \\\n  deeper.cuh \\\n  /usr/include/stdint.h\n"
    )
    require_declared("//:scale", "scale.cu", "unit.d", ["scale.cu", "scale.cuh"], [])
