"""From files to a callable: are manifest and cubin there, whole, and of one link?"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from pipelink_rules.files.codec import read_json
from pipelink_rules.launch.allocate_outputs import Allocator
from pipelink_rules.launch.errors import refuse
from pipelink_rules.launch.kernel import Kernel
from pipelink_rules.launch.manifest import check_manifest
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
    """The callable of a linked megakernel.

    path: `<name>.manifest.json`, or the folder that holds it.
    cubin: another cubin with the same interface (a twin); it is taken as it is.
    allocator: `allocator(shape, dtype, like) -> array` for outputs that a call leaves out.
    watchdog_cycles: how long a wait may last (runtimes "watchdog", "record", "jitter"; default:
        4e9 cycles, about 2 s).
    driver: stands in for `cuda.bindings.driver` (tests).

    Nothing is loaded on a GPU before the first call.  Raises PipelinkError (PL0010, PL0011,
    PL1400) where the files are missing, damaged, or do not belong together.
    """
    place = _manifest_path(Path(path))
    manifest = read_json(place, Manifest)
    check_manifest(manifest, place)
    image = Path(cubin) if cubin is not None else place.parent / manifest.cubin
    try:
        data = image.read_bytes()
    except (OSError, ValueError) as problem:
        raise refuse(
            "PL1400",
            str(image),
            f"the cubin of {manifest.name} cannot be read",
            Span(image.name),
            found=str(problem),
            helps=("build the megakernel again",),
        ) from None
    digest = hashlib.sha256(data).hexdigest()
    if cubin is None and digest != manifest.cubin_sha256:
        raise refuse(
            "PL1400",
            str(image),
            f"{image.name} is not the cubin that {place.name} describes",
            Span(image.name),
            Span(place.name),
            expected=f"sha256 {manifest.cubin_sha256}",
            found=f"sha256 {digest}",
            helps=("build the megakernel again, or copy both files together",),
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
        f"{path} holds {len(found)} manifests, not one",
        Span(str(path)),
        expected="one *.manifest.json",
        found=", ".join(item.name for item in found) or "none",
        helps=("name the .manifest.json file",),
    )
