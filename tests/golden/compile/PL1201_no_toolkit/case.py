from pathlib import Path

from pipelink_rules.toolkit.find import find_toolkit


def run():
    here = Path(__file__).parent
    find_toolkit(here / "build", {"PIPELINK_CUDA": str(here / "cuda"), "PATH": "/usr/bin:/bin"})
