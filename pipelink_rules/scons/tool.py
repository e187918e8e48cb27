"""The SCons tool: setup of an environment, start and end of a build."""

import atexit
import os
import sys
from pathlib import Path
from typing import Any

import SCons.CacheDir
import SCons.Errors
import SCons.SConsign
import SCons.Script
from SCons.Action import Action
from SCons.Builder import Builder

from pipelink_rules.diagnostics.diagnostic import PipelinkError, error
from pipelink_rules.scons import finish, rules
from pipelink_rules.scons.action import describe_action, run_action
from pipelink_rules.scons.cache import VerifiedCache, prune
from pipelink_rules.scons.graph import scanner
from pipelink_rules.scons.options import Options, read_options
from pipelink_rules.scons.session import Session, jobs, memory_bytes, sessions


def generate(env: Any, **_: Any) -> None:
    """Add the rules to an environment; the first one locks the build directory."""
    top = Path(env.Dir("#").abspath)
    session = sessions.get(top) or _begin(env, top)
    env["PIPELINK"] = session
    action = Action(run_action, describe_action)
    env.Append(
        BUILDERS={
            "PipelinkAction": Builder(action=action),
            "PipelinkCompile": Builder(action=action, source_scanner=scanner()),
        }
    )
    _cache(env, session.options)
    env.AddMethod(rules.kernel_component, "KernelComponent")
    env.AddMethod(rules.prebuilt_component, "PrebuiltComponent")
    env.AddMethod(rules.device_runtime, "DeviceRuntime")
    env.AddMethod(rules.megakernel, "Megakernel")
    env.AddMethod(finish.finish, "PipelinkFinish")


def environment(**variables: Any) -> Any:
    """Return an environment with these rules and nothing else."""
    SCons.Script.DefaultEnvironment(tools=[])
    return SCons.Script.Environment(tools=[generate, *variables.pop("tools", [])], **variables)


def _begin(env: Any, top: Path) -> Session:
    option = SCons.Script.GetOption
    # Only content hashes decide: time stamps are meaningless after a checkout.
    env.Decider("content")
    SCons.Script.SetOption("hash_format", "sha256")
    SCons.Script.SetOption("num_jobs", jobs(len(os.sched_getaffinity(0)), memory_bytes()))
    helping = bool(option("help"))
    try:
        session = Session(top, read_options(SCons.Script.ARGUMENTS))
        session.quiet = helping or any(map(option, ("no_exec", "question", "clean")))
        if not helping:
            session.lock.acquire(session.options.wait, lambda text: print(text, file=sys.stderr))
    except PipelinkError as problem:
        Session(top, Options()).report(problem.diagnostics, "nothing was built")
        raise SCons.Errors.UserError("the build cannot start") from None
    if not helping:
        session.journal.recover()
        SCons.Script.SConsignFile(str(session.build / ".sconsign"))
    atexit.register(_end, session)
    sessions[top] = session
    return session


def _cache(env: Any, options: Options) -> None:
    if options.cache is None or SCons.Script.GetOption("help"):
        return
    if SCons.Script.GetOption("interactive"):
        # An interactive build keeps signatures of files that have changed since (SCons #2606).
        if options.cache:
            problem = error(
                "PL1306",
                "`cache` and `--interactive` are mutually exclusive",
                suggestions=("remove `cache=`", "or remove `--interactive`"),
                subject="cache",
            )
            env["PIPELINK"].report(problem.diagnostics, "nothing was built")
            raise SCons.Errors.UserError("the build cannot start")
        return
    VerifiedCache.begin = staticmethod(env["PIPELINK"].journal.begin)
    path = env["PIPELINK"].cache_folder
    path.parent.mkdir(parents=True, exist_ok=True)
    env.CacheDir(str(path), VerifiedCache)


def _end(session: Session) -> None:
    """End the build: delete the journal after SCons has stored signatures, release the lock."""
    if not session.lock.held:
        return
    if not session.finished and (session.components or session.megakernels):
        sys.stderr.write("pipelink: SConstruct does not end with env.PipelinkFinish()\n")
    session.journal.end()
    if VerifiedCache.pushed and session.options.cache is not None:
        prune(session.cache_folder)
    finish.document(session)
    finish.table(session)
    session.lock.release()
