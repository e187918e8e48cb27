from pipelink_rules.toolkit.process import ToolOutput, check_alive


def run():
    check_alive(ToolOutput(("/cuda/bin/ptxas", "-arch=sm_90a", "scale.ptx"), -11, ""))
