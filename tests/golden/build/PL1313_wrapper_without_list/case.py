from pipelink_rules.actions.header_deps import require_declared


def run() -> None:
    require_declared("//:scale", "scale.cu", "unit.d", ["scale.cu"], [])
