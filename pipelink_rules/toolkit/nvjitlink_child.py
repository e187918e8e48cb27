"""One link by libnvJitLink in a separate process: `python -m ... nvjitlink_child job.json`.

The library blocks the interpreter for the whole link, and each link may use another version of it.
Reads {library, options, objects, output}; prints the library's logs; exit status 0, 1 (the link
failed) or 3 (the library or its binding is not usable).
"""

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any


def main(argv: list[str]) -> int:
    """Run the job and return the exit status."""
    job = json.loads(Path(argv[1]).read_text(encoding="utf-8"))
    try:
        # Loaded first, by path, so that the binding uses this toolkit's library.
        ctypes.CDLL(job["library"], mode=ctypes.RTLD_GLOBAL)
        from cuda.bindings import nvjitlink
    except (ImportError, OSError) as problem:
        print(f"nvjitlink fatal: {problem}")
        return 3
    return _link(nvjitlink, job)


def _link(nvjitlink: Any, job: dict[str, Any]) -> int:
    handle = None
    try:
        handle = nvjitlink.create(len(job["options"]), list(job["options"]))
        for name in job["objects"]:
            nvjitlink.add_file(handle, nvjitlink.InputType.ANY, name)
        nvjitlink.complete(handle)
        result = _result(nvjitlink, handle, "-ptx" in job["options"])
    except nvjitlink.nvJitLinkError as problem:
        if handle is not None:
            print(_log(nvjitlink, handle))
        print(f"nvjitlink fatal: {problem}")
        return 1
    print(_log(nvjitlink, handle))
    temporary = f"{job['output']}.{os.getpid()}"
    Path(temporary).write_bytes(result)
    os.replace(temporary, job["output"])
    return 0


def _result(nvjitlink: Any, handle: int, ptx: bool) -> bytes:
    if ptx:
        return _read(nvjitlink.get_linked_ptx_size, nvjitlink.get_linked_ptx, handle).rstrip(b"\0")
    return _read(nvjitlink.get_linked_cubin_size, nvjitlink.get_linked_cubin, handle)


def _read(size_of: Any, get: Any, handle: int) -> bytes:
    data = bytearray(size_of(handle))
    if len(data) > 1:
        get(handle, data)
    return bytes(data)


def _log(nvjitlink: Any, handle: int) -> str:
    logs = (
        _read(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle),
        _read(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle),
    )
    parts = (log.rstrip(b"\0").decode("utf-8", "replace").rstrip() for log in logs)
    return "\n".join(part for part in parts if part)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
