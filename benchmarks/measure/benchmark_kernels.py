"""The megakernels of a build, their references, and arrays to run them on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure.references import Reference, reference_of
from pipelink_rules.expression.evaluate import value_of
from pipelink_rules.launch import Kernel, load
from pipelink_rules.model.linked_kernel import Manifest, TensorArgument

GUARD = 512  # elements before and after an output that must not change
CANARY = 1.0


@dataclass(frozen=True)
class Subject:
    """One built megakernel."""

    folder: Path
    kernel: Kernel
    reference: Reference | None

    @property
    def name(self) -> str:
        """Return the name of the megakernel."""
        return self.kernel.manifest.name

    def twin(self, kind: str) -> Kernel | None:
        """Return the `lto` or `native` twin with the same interface; None if it was not built."""
        path = self.folder / f"{self.name}.{kind}_twin.cubin"
        if not path.is_file():
            return None
        return load(self.folder / f"{self.name}.manifest.json", cubin=path)


def subjects(build: Path, arch: str, names: list[str]) -> list[Subject]:
    """Return every built megakernel (or those named), by name."""
    found = []
    for folder in sorted((build / arch / "megakernels").glob("*")):
        manifest = folder / f"{folder.name}.manifest.json"
        if manifest.is_file() and (not names or folder.name in names):
            kernel = load(manifest)
            found.append(
                Subject(folder, kernel, reference_of(folder.name, widths(kernel.manifest)))
            )
    return found


def widths(manifest: Manifest) -> dict[str, int]:
    """Return keyword -> last extent, if it is a number."""
    return {
        tensor.name: int(tensor.shape[-1])
        for tensor in manifest.tensors
        if tensor.shape and tensor.shape[-1].isdigit()
    }


def sizes_of(manifest: Manifest, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of a reference, rounded up to what the contracts require."""
    return {
        name: -(-max(minimum, sizes.get(name, minimum)) // multiple) * multiple
        for name, minimum, _, multiple in manifest.symbols
    }


def make_inputs(
    manifest: Manifest, sizes: Mapping[str, int], scalars: Mapping[str, float], seed: int
) -> dict[str, Any]:
    """Return random inputs: normal, matrices scaled by 1/sqrt(K) so that results are near 1."""
    import torch

    generator = torch.Generator(device="cuda").manual_seed(seed)
    made: dict[str, Any] = {name: scalars.get(name, 1.0) for name, _ in manifest.scalars}
    for tensor in manifest.tensors:
        if tensor.direction == "out":
            continue
        shape = [value_of(text, sizes) for text in tensor.shape]
        values = torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32)
        if "K" in tensor.shape and tensor.name != "a":
            values /= sizes["K"] ** 0.5
        made[tensor.name] = values.to(dtype_of(tensor))
    return made


def dtype_of(tensor: TensorArgument) -> Any:
    """Return the torch dtype."""
    import torch

    names = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i32": "int32"}
    return getattr(torch, names[tensor.dtype])


class Output:
    """An output between guards, poisoned before every launch."""

    def __init__(self, tensor: TensorArgument, sizes: Mapping[str, int]):
        import torch

        shape = [value_of(text, sizes) for text in tensor.shape]
        count = 1
        for extent in shape:
            count *= extent
        self.name = tensor.name
        self._all = torch.full((count + 2 * GUARD,), CANARY, dtype=dtype_of(tensor), device="cuda")
        self.array = self._all[GUARD : GUARD + count].view(shape)

    def poison(self) -> None:
        """Fill everything with NaN."""
        self.array.fill_(float("nan"))

    def guards_intact(self) -> bool:
        """Return whether nothing was written before or after the output."""
        return bool((self._all[:GUARD] == CANARY).all() and (self._all[-GUARD:] == CANARY).all())


def make_outputs(manifest: Manifest, sizes: Mapping[str, int]) -> dict[str, Output]:
    """Return one output per keyword."""
    return {
        tensor.name: Output(tensor, sizes)
        for tensor in manifest.tensors
        if tensor.direction == "out"
    }


def bytes_of(manifest: Manifest, sizes: Mapping[str, int]) -> int:
    """Return the bytes of all arrays of one call."""
    from pipelink_rules.model.contract import DTYPES

    total = 0
    for tensor in manifest.tensors:
        count = DTYPES[tensor.dtype][0]
        for text in tensor.shape:
            count *= value_of(text, sizes)
        total += count
    return total
