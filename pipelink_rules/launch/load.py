"""Load a megakernel: manifest and cubin, checked to be complete and from one link -> Kernel."""

import hashlib
import os
from pathlib import Path, PurePosixPath
from typing import Any

from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.files.codec import read_json
from pipelink_rules.launch.errors import refuse
from pipelink_rules.launch.frameworks import Allocator
from pipelink_rules.launch.kernel import Kernel
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.model.source_span import Span


def load(
    path: str | os.PathLike[str],
    *,
    cubin: str | os.PathLike[str] | None = None,
    allocator: Allocator | None = None,
    watchdog_cycles: int | None = None,
    driver: Any = None,
) -> Kernel:
    """Return the callable of a linked megakernel.

    path: `<name>.manifest.json`, or its folder.
    cubin: another cubin with the same interface (a twin), used without checking its digest.
    allocator: `allocator(shape, dtype, like) -> array` for omitted outputs.
    watchdog_cycles: how long a wait may last (runtimes "watchdog", "record", "jitter"; default:
        4e9 cycles, about 2 s).
    driver: replaces `cuda.bindings.driver` (tests).

    Nothing is loaded on a GPU before the first call.  Raise PipelinkError (PL0010, PL0011, PL1400)
    if the files are missing, damaged, or not from one link.
    """
    place = _manifest_path(Path(path))
    manifest = read_json(place, Manifest)
    _check_cubin_name(manifest, place)
    image = Path(cubin) if cubin is not None else place.parent / manifest.cubin
    try:
        data = image.read_bytes()
    except (OSError, ValueError) as problem:
        raise refuse(
            "PL1400",
            str(image),
            f"cannot read the cubin of `{manifest.name}`",
            Span(image.name),
            found=str(problem),
            suggestions=(_rebuild(manifest),),
        ) from None
    digest = hashlib.sha256(data).hexdigest()
    if cubin is None and digest != manifest.cubin_sha256:
        raise refuse(
            "PL1400",
            str(image),
            f"{image.name} does not match {place.name}",
            Span(image.name),
            Span(place.name),
            expected=f"sha256 {manifest.cubin_sha256}",
            found=f"sha256 {digest}",
            suggestions=(_rebuild(manifest), "or copy both files of one link together"),
        )
    return Kernel(
        manifest, data, allocator=allocator, watchdog_cycles=watchdog_cycles, driver=driver
    )


def _manifest_path(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.manifest.json"))
    if len(found) == 1:
        return found[0]
    raise refuse(
        "PL1400",
        str(path),
        f"{path} contains {plural(len(found), 'manifest')}",
        Span(str(path)),
        expected="one *.manifest.json",
        found=", ".join(item.name for item in found) or "none",
        suggestions=("pass the path of a .manifest.json file",),
    )


def _check_cubin_name(manifest: Manifest, place: Path) -> None:
    """Raise PL1400 if the manifest names a cubin outside its own folder."""
    name = manifest.cubin
    if name not in ("", ".", "..") and PurePosixPath(name).name == name and "\\" not in name:
        return
    raise refuse(
        "PL1400",
        manifest.name,
        f"{place.name} names a cubin outside its own folder",
        Span(str(place)),
        expected="the name of a file in the folder of the manifest",
        found=manifest.cubin,
        suggestions=(_rebuild(manifest), "or pass `cubin=` to `load`"),
    )


def _rebuild(manifest: Manifest) -> str:
    return f"run `scons megakernels/{manifest.name}`"
