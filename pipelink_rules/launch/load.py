"""Load a megakernel: manifest and cubin, checked to be complete and from one link -> Kernel."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.expression.evaluate import value_of
from pipelink_rules.expression.parse import DivisionByZero, ExpressionError
from pipelink_rules.files.codec import read_json
from pipelink_rules.launch.errors import refuse
from pipelink_rules.launch.frameworks import Allocator
from pipelink_rules.launch.kernel import Kernel
from pipelink_rules.model.contract import DTYPES
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.model.source_span import Span

_DIRECTIONS = ("in", "out", "inout")
_PARAMETERS = ("tensor_map", "pointer", "scratch", "counters", "i32", "u32", "f32")
_SCALARS = ("f32", "i32", "u32")
_LARGEST_SIZE = 2**63


def check_manifest(manifest: Manifest, place: Path) -> None:
    """Raise PL0011 if the manifest contradicts itself, PL1400 if its cubin is elsewhere."""
    name = manifest.cubin
    if name in ("", ".", "..") or PurePosixPath(name).name != name or "\\" in name:
        raise refuse(
            "PL1400",
            manifest.name,
            f"{place.name} names a cubin outside its own folder",
            Span(str(place)),
            expected="the name of a file in the folder of the manifest",
            found=manifest.cubin,
            suggestions=(_rebuild(manifest), "or pass `cubin=` to `load`"),
        )
    fault = next(_faults(manifest), "")
    if fault:
        raise refuse(
            "PL0011",
            str(place),
            f"{place.name} contradicts itself: {fault}",
            Span(str(place)),
            expected="a manifest that the link wrote",
            suggestions=(_rebuild(manifest),),
        )


def _rebuild(manifest: Manifest) -> str:
    return f"run `scons megakernels/{manifest.name}`"


def _faults(manifest: Manifest) -> Iterator[str]:
    words = [item.name for item in manifest.tensors] + [name for name, _ in manifest.scalars]
    for word in words:
        if not word.isidentifier() or word == "stream" or words.count(word) > 1:
            yield f"`{word}` is not a valid keyword"
    for item in manifest.tensors:
        if item.direction not in _DIRECTIONS:
            yield f"direction `{item.direction}` of `{item.name}` is unknown"
        if item.align < 1:
            yield f"`{item.name}` is aligned to {item.align} bytes"
    for name, dtype in manifest.scalars:
        if dtype not in _SCALARS:
            yield f"type `{dtype}` of `{name}` is unknown"
    yield from _parameter_faults(manifest, set(words))
    for name, low, high, multiple in manifest.symbols:
        if not 0 <= low <= high or multiple < 1:
            yield f"`{name}` has no valid value: {low} to {high}, a multiple of {multiple}"
    yield from _expression_faults(manifest)
    if not (manifest.threads > 0 <= manifest.shared_bytes and manifest.occupancy > 0):
        yield "threads, shared memory or occupancy are invalid"
    if min(manifest.cluster) < 1:
        yield f"the cluster is {manifest.cluster}"


def _parameter_faults(manifest: Manifest, words: set[str]) -> Iterator[str]:
    known = words | {name for name, *_ in manifest.symbols}
    known |= {piece.name for piece in manifest.workspace}
    for piece in manifest.workspace:
        if piece.dtype not in DTYPES or piece.kind not in ("scratch", "counters"):
            yield f"`{piece.name}` is a `{piece.kind}` of `{piece.dtype}`"
    for item in manifest.parameters:
        if item.kind not in _PARAMETERS:
            yield f"kind `{item.kind}` of parameter `{item.name}` is unknown"
        if item.name not in known:
            yield f"parameter `{item.name}` is neither a keyword nor a size"


def _expression_faults(manifest: Manifest) -> Iterator[str]:
    """Yield the expressions that cannot be evaluated over the sizes of the manifest."""
    sizes = {name: max(low, 1) for name, low, *_ in manifest.symbols}
    launch = {**sizes, "sms": 1, "clusters": 1, "occupancy": manifest.occupancy}
    texts = [(text, sizes) for item in manifest.tensors for text in item.shape]
    texts += [(text, sizes) for text, _ in manifest.requires]
    texts += [(piece.count, sizes) for piece in manifest.workspace]
    for text, known in [*texts, (manifest.grid, launch)]:
        try:
            value = value_of(text, known)
        except DivisionByZero:
            continue
        except ExpressionError as problem:
            yield f"`{text[:60]}`: {problem}"
        else:
            if abs(value) >= _LARGEST_SIZE:
                yield f"`{text[:60]}` is {str(value)[:30]}..."


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
    check_manifest(manifest, place)
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
