"""Who makes an output that the caller left out?  The framework of the first array."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from pipelink_rules.expression.evaluate import names_in, value_of
from pipelink_rules.model.linked_kernel import Manifest

# allocator(shape, dtype, like) -> array; `like` is the first array of the call
Allocator = Callable[[tuple[int, ...], str, Any], Any]

_TORCH = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i32": "int32", "u8": "uint8"}
_NUMPY = {"f16": "float16", "f32": "float32", "i32": "int32", "u32": "uint32", "u8": "uint8"}


def allocator_for(like: Any) -> Allocator | None:
    """The allocator of the framework that `like` belongs to; None where it has none."""
    package = type(like).__module__.partition(".")[0]
    return {"torch": _torch, "cupy": _cupy}.get(package)


def _torch(shape: tuple[int, ...], dtype: str, like: Any) -> Any:
    torch = sys.modules["torch"]
    return torch.empty(shape, dtype=getattr(torch, _TORCH.get(dtype, "uint32")), device=like.device)


def _cupy(shape: tuple[int, ...], dtype: str, like: Any) -> Any:
    if dtype not in _NUMPY:
        return None
    return sys.modules["cupy"].empty(shape, dtype=_NUMPY[dtype])


def output_shapes(
    manifest: Manifest, given: Callable[[str], bool], symbols: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """The shapes of the outputs that were left out, where the symbols give them."""
    return {
        tensor.name: tuple(value_of(text, symbols) for text in tensor.shape)
        for tensor in manifest.tensors
        if tensor.direction == "out"
        and not given(tensor.name)
        and all(names_in(text) <= set(symbols) for text in tensor.shape)
    }
