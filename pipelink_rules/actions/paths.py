"""The paths of all files of a build; `build`: the build directory."""

from collections.abc import Iterable
from dataclasses import dataclass

_SUFFIXES = {
    "header": ".contract.cuh",
    "fatbin": ".fatbin",
    "shadow": ".shadow.ptx",
    "record": ".object.json",
    "probe": ".probe.fatbin",
    "interface": ".interface.json",
    "sidecar": ".contract.yaml",
}


@dataclass(frozen=True)
class VariantFiles:
    """The files of one variant for one target."""

    folder: str
    header: str
    fatbin: str
    shadow: str  # the PTX of the same compilation
    record: str  # what is known of the object before the probe
    probe: str  # the object of the kernel that the probe links
    interface: str
    sidecar: str


def variants_folder(build: str, arch: str) -> str:
    """Return the folder that generated headers are included from."""
    return f"{build}/{arch}/variants"


def variant_files(build: str, arch: str, name: str, component: str) -> VariantFiles:
    """Return every file of a variant, by its name and its component's."""
    folder = f"{variants_folder(build, arch)}/{name}"
    files = {kind: f"{folder}/{component}{suffix}" for kind, suffix in _SUFFIXES.items()}
    return VariantFiles(folder, **files)


def megakernel_stem(build: str, arch: str, name: str) -> str:
    """Return what every file of a megakernel begins with, up to the dot of its suffix."""
    return f"{build}/{arch}/megakernels/{name}/{name}"


def runtime_fatbin(build: str, arch: str, name: str, flags: Iterable[str] = ()) -> str:
    """The object of a build of the device runtime, one for each set of code-generation flags."""
    from pipelink_rules.compile.object import runtime_file

    return f"{build}/{arch}/runtime/{runtime_file(name, flags)}"


def times_file(build: str, arch: str, name: str) -> str:
    """Seconds of the last link; no output of the build, because they differ from run to run."""
    return f"{build}/.times/{arch}/{name}.json"
