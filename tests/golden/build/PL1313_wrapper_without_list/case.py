from pipelink_rules.steps.headers import require_declared


def run() -> None:
    require_declared("//:scale", "scale.cu", "unit.d", ["scale.cu"], [])
