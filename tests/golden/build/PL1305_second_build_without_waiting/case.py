from pathlib import Path

from filelock import FileLock

from pipelink_rules.scons.lock import BuildLock


def run() -> None:
    build = Path("build")
    build.mkdir()
    (build / ".lock.owner").write_text('{"pid": 4711, "command": "scons -j8", "since": "09:41:00"}')
    with FileLock(build / ".lock"):
        BuildLock(build).acquire(wait=False, say=print)
