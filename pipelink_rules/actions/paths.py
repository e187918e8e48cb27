"""The paths of all files of a build, relative to the build directory."""

from collections.abc import Iterable
from dataclasses import dataclass

from pipelink_rules.model.variant import Variant


@dataclass(frozen=True)
class VariantFiles:
    """The files of one variant for one target."""

    folder: str
    component: str

    def _file(self, suffix: str) -> str:
        return f"{self.folder}/{self.component}{suffix}"

    @property
    def header(self) -> str:
        return self._file(".contract.cuh")

    @property
    def fatbin(self) -> str:
        return self._file(".fatbin")

    @property
    def shadow(self) -> str:
        return self._file(".shadow.ptx")

    @property
    def interface(self) -> str:
        return self._file(".interface.json")

    @property
    def sidecar(self) -> str:
        return self._file(".contract.yaml")

    @property
    def record(self) -> str:
        """What is known of the object before the probe."""
        return self._file(".object.json")

    @property
    def probe(self) -> str:
        """The object of the kernel that the probe links."""
        return self._file(".probe.fatbin")


@dataclass(frozen=True)
class MegakernelFiles:
    """The files of one megakernel for one target."""

    folder: str
    name: str

    def file(self, suffix: str) -> str:
        """Return `<folder>/<name>.placement.json` for "placement.json"."""
        return f"{self.folder}/{self.name}.{suffix}"


def variants_folder(arch: str) -> str:
    """Return the folder that generated headers are included from."""
    return f"{arch}/variants"


def variant_files(arch: str, variant: Variant) -> VariantFiles:
    """Return every file of a variant."""
    return named_files(arch, variant.name, variant.contract.component)


def named_files(arch: str, name: str, component: str) -> VariantFiles:
    """Return the same, by the variant's name."""
    return VariantFiles(f"{variants_folder(arch)}/{name}", component)


def megakernel_files(arch: str, name: str) -> MegakernelFiles:
    """Return every file of a megakernel."""
    return MegakernelFiles(f"{arch}/megakernels/{name}", name)


def runtime_fatbin(arch: str, name: str, flags: Iterable[str] = ()) -> str:
    """The object of a build of the device runtime, one for each set of code-generation flags."""
    from pipelink_rules.compile.object import runtime_file

    return f"{arch}/runtime/{runtime_file(name, flags)}"


def weak_table(fatbin: str) -> str:
    """Return the table of weak symbols of an object without a sidecar."""
    from pipelink_rules.toolkit.weak_symbols import weak_file

    return weak_file(fatbin).as_posix()


def times_file(build: str, arch: str, name: str) -> str:
    """Seconds of the last link; no output of the build, because they differ from run to run."""
    return f"{build}/.times/{arch}/{name}.json"
