"""The SCons front end, the only package that imports SCons.

In another repository, after `pip install pipelink`:

    import pipelink_rules.scons as pl

    env = pl.Environment()
    env.KernelComponent(name="scale", srcs=["scale.cu"])
    env.Megakernel(name="scaled", instances={...})
    env.PipelinkFinish()
"""

from typing import Any

__all__ = ["Environment", "exists", "generate"]


def Environment(**variables: Any) -> Any:
    """Return a construction environment with the rules and no other tools."""
    from pipelink_rules.scons.tool import environment

    return environment(**variables)


def generate(env: Any, **options: Any) -> None:
    """SCons' entry of a tool."""
    from pipelink_rules.scons.tool import generate as generate_tool

    generate_tool(env, **options)


def exists(env: Any) -> bool:
    """SCons' entry of a tool.  A missing toolkit is an error of the build, not of the tool."""
    return True
