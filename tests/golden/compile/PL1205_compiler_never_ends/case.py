from pipelink_rules.toolkit.process import ToolOutput, check_alive


def run():
    check_alive(ToolOutput(("/cuda/bin/nvcc", "scale.cu"), -9, "", timed_out=True))
