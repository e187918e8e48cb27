"""The launcher: `load(path)` returns a callable megakernel.  Requires neither z3 nor SCons."""

from pipelink_rules.launch.errors import LaunchError, WatchdogError
from pipelink_rules.launch.kernel import Kernel
from pipelink_rules.launch.load import load

__all__ = ["Kernel", "LaunchError", "WatchdogError", "load"]
