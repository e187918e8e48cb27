"""Files of a toolkit folder: .run installer, distribution package or pip wheels -> `Layout`."""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from pipelink_rules.files.atomic import sha256

_TOOLS = ("nvcc", "ptxas", "nvlink", "fatbinary")
_LIBNVVM = ("nvvm/lib64/libnvvm.so", "nvvm/lib/libnvvm.so", "nvvm/lib64/libnvvm.so.4")
_LIBRARY_FOLDERS = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")


@dataclass(frozen=True)
class Layout:
    """The files of a candidate, before any of its tools runs."""

    root: Path
    nvcc: Path
    ptxas: Path
    nvlink: Path
    fatbinary: Path
    cicc: Path
    libdevice: Path
    libnvvm: Path
    libraries: Path
    includes: tuple[Path, ...]
    cuobjdump: Path | None
    nvdisasm: Path | None
    nvjitlink: Path | None
    host_compiler: Path

    @property
    def tools(self) -> tuple[Path, ...]:
        """The files whose contents determine the output of a build."""
        fixed = (self.nvcc, self.cicc, self.ptxas, self.nvlink, self.fatbinary, self.libdevice)
        linked = (self.libnvvm, self.libraries / "libcudadevrt.a")
        return (*fixed, *linked, *([self.nvjitlink] if self.nvjitlink else []))


class Incomplete(Exception):
    """A required file of a toolkit is missing; the text says which."""


def layout_of(root: Path, environ: Mapping[str, str]) -> Layout:
    """Return the files below `root`; raise Incomplete if one is missing."""
    usual = "/usr/bin:/bin"
    host = which("g++", path=environ.get("PATH", usual)) or which("g++", path=usual)
    if host is None:
        raise Incomplete("g++ is not on PATH; nvcc preprocesses with it")
    folders = [root / folder for folder in _LIBRARY_FOLDERS]
    libraries = _first((folder / "libcudadevrt.a" for folder in folders), "libcudadevrt.a").parent
    include_roots = (root / "include", root / "targets/x86_64-linux/include")
    include = _first((folder / "cuda_runtime.h" for folder in include_roots), "cuda_runtime.h")
    extras = (include.parent / "cccl", root / "cccl")
    nvvm = [root / name for name in _LIBNVVM]
    nvvm += [folder / name for folder in folders for name in ("libnvvm.so", "libnvvm.so.4")]
    libdevice = sorted((root / "nvvm/libdevice").glob("libdevice.*.bc"))
    jit = (path for folder in folders for path in sorted(folder.glob("libnvJitLink.so.*")))
    return Layout(
        root=root,
        **{name: _first((root / "bin" / name,), f"bin/{name}") for name in _TOOLS},
        cicc=_first((root / "nvvm/bin/cicc", root / "bin/cicc"), "nvvm/bin/cicc"),
        libdevice=_first(libdevice, "nvvm/libdevice/libdevice.10.bc"),
        libnvvm=_first(nvvm, "libnvvm.so (nvlink loads it for link-time optimization)"),
        libraries=libraries,
        includes=(include.parent, *(folder for folder in extras if folder.is_dir())),
        cuobjdump=_tool(root, "cuobjdump", environ),
        nvdisasm=_tool(root, "nvdisasm", environ),
        nvjitlink=next(jit, None),
        host_compiler=Path(host).absolute(),
    )


def _first(paths: Iterable[Path], name: str) -> Path:
    for path in paths:
        if path.exists():
            return path
    raise Incomplete(f"missing {name}")


def _tool(root: Path, name: str, environ: Mapping[str, str]) -> Path | None:
    bundled = root / "bin" / name
    if os.access(bundled, os.X_OK):
        return bundled
    # Readers of cubins only: those of another toolkit suffice and are not in the fingerprint.
    found = which(name, path=environ.get("PATH", ""))
    return Path(found) if found else None


def root_of_nvcc(nvcc: Path, dryrun: str) -> Path | None:
    """Return the toolkit of an `nvcc`, which may be a wrapper, from the text of `nvcc -dryrun`."""
    found = re.search(r"^#\$ TOP=(\S+)", dryrun, re.M)
    if found:
        return Path(os.path.normpath(found[1]))
    real = nvcc.resolve()
    return real.parent.parent if real.parent.name == "bin" else None


def shim_nvvm(layout: Layout, shims: Path) -> Path:
    """Return the folder for `nvlink -nvvmpath`.

    nvlink opens only `<nvvmpath>/lib64/libnvvm.so`; wheels and distribution packages have the
    library in another folder, under a versioned name.  A private folder links to it.
    """
    bundled = layout.root / "nvvm"
    if (bundled / "lib64/libnvvm.so").exists():
        return bundled
    name = hashlib.sha256(str(layout.libnvvm).encode()).hexdigest()[:8]
    folder = (shims / f"nvvm_{name}").absolute()
    link = folder / "lib64/libnvvm.so"
    if not (link.is_symlink() and os.readlink(link) == str(layout.libnvvm)):
        link.parent.mkdir(parents=True, exist_ok=True)
        temporary = link.with_name(f".libnvvm.so.{os.getpid()}")
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(layout.libnvvm)
        os.replace(temporary, link)
    return folder


def stat_key(layout: Layout) -> str:
    """Return a key that changes with every tool, library and header, without reading a file."""
    rows = [f"{layout.host_compiler} {_stat(layout.host_compiler)}"]
    rows += [f"{path} {_stat(path)}" for path in (*layout.tools, *_headers(layout))]
    rows += [str(path) for path in (layout.cuobjdump, layout.nvdisasm)]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _stat(path: Path) -> str:
    info = path.stat()
    return f"{info.st_size} {info.st_mtime_ns}"


def _headers(layout: Layout) -> list[Path]:
    folders = [
        folder for folder in (layout.includes[0], layout.includes[0] / "crt") if folder.is_dir()
    ]
    entries = (entry for folder in folders for entry in os.scandir(folder))
    return [Path(path) for path in sorted(entry.path for entry in entries if entry.is_file())]


def fingerprint_of(layout: Layout, versions: Iterable[str]) -> str:
    """Return sha256 over the contents of the tools: equal in every checkout and machine."""
    rows = [f"{path.name} {sha256(path)}" for path in (*layout.tools, *_headers(layout))]
    return hashlib.sha256("\n".join([*rows, *versions]).encode()).hexdigest()
