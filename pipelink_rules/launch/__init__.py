"""Running what was linked: `load(path)` gives a callable.  Needs neither z3 nor SCons."""

from pipelink_rules.launch.failure import LaunchError, WatchdogError
from pipelink_rules.launch.kernel import Kernel
from pipelink_rules.launch.read import load

__all__ = ["Kernel", "LaunchError", "WatchdogError", "load"]
