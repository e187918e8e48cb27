from pipelink_rules.compile.compiler_errors import check_alive
from pipelink_rules.toolkit.process import ToolOutput


def run():
    check_alive(ToolOutput(("/cuda/bin/nvcc", "scale.cu"), -9, "", timed_out=True))
