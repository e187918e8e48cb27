from pipelink_rules.compile.compiler_errors import check_alive
from pipelink_rules.toolkit.process import ToolOutput


def run():
    check_alive(ToolOutput(("/cuda/bin/ptxas", "-arch=sm_90a", "scale.ptx"), -11, ""))
