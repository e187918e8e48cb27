"""A usable toolkit: tools, folders, version and fingerprint."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ToolkitRejected:
    """A candidate that failed the self-test."""

    source: str  # "$PIPELINK_CUDA", "wheels of this python", "nvcc on PATH", "/usr/local"
    root: str
    version: str  # "" if it is unknown
    reason: str


@dataclass(frozen=True)
class Toolkit:
    """A toolkit that passed the self-test.  Paths are absolute; the fingerprint contains none."""

    root: str
    source: str
    version: str  # of the compiler: "13.5.37"
    fingerprint: str  # sha256 over the contents of tools, libraries and headers, and over versions
    nvcc: str
    ptxas: str
    nvlink: str
    cicc: str
    cuobjdump: str  # "" where there is none
    nvdisasm: str  # "" where there is none
    nvvmpath: str  # the folder for `nvlink -nvvmpath`: it contains lib64/libnvvm.so
    libraries: str  # the folder of libcudadevrt.a
    includes: tuple[str, ...]  # the folders of its headers
    libnvvm: str
    nvjitlink: str  # libnvJitLink of this toolkit; "" where there is none
    host_compiler: str  # g++: nvcc preprocesses with it, also for device-only output
    archs: tuple[str, ...] = ()  # virtual architectures the compiler knows: "compute_90a", ...
    refused: tuple[ToolkitRejected, ...] = ()  # candidates tried before it

    def environment(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a tool; see `minimal_environment`."""
        folders = (str(Path(self.nvcc).parent), str(Path(self.host_compiler).parent))
        return minimal_environment(folders, environ)


def minimal_environment(
    folders: tuple[str, ...], environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return an environment of PATH and TMPDIR only.

    NVCC_PREPEND_FLAGS, NVCC_APPEND_FLAGS, CPATH, CUDA_HOME and similar variables change the
    behavior of tools without changing a command line, so tools run without them.
    """
    path = list(dict.fromkeys([*folders, "/usr/bin", "/bin"]))
    result = {"PATH": ":".join(folder for folder in path if folder), "LC_ALL": "C"}
    if environ and environ.get("TMPDIR"):
        result["TMPDIR"] = environ["TMPDIR"]
    return result


def version_tuple(version: str) -> tuple[int, ...]:
    """Return (13, 5, 37) for `13.5.37`; (0,) if there is no number."""
    parts = [int(part) for part in version.split(".") if part.isdigit()]
    return tuple(parts) or (0,)
