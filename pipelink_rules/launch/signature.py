"""The Python signature and the docstring of a megakernel."""

import inspect
from typing import Any

from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.launch.errors import refuse
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.model.target import TARGETS


def argument_order(manifest: Manifest) -> tuple[str, ...]:
    """Return keywords in the order of positional arguments: inputs, scalars, then outputs."""
    inputs = [item.name for item in manifest.tensors if item.direction != "out"]
    outputs = [item.name for item in manifest.tensors if item.direction == "out"]
    return (*inputs, *(name for name, _ in manifest.scalars), *outputs)


def signature_of(manifest: Manifest) -> inspect.Signature:
    """Return `(a, b, bias, out=None, *, stream=None)`."""
    kind, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    outputs = {item.name: None for item in manifest.tensors if item.direction == "out"}
    parameters = [
        inspect.Parameter(name, kind, default=outputs.get(name, inspect.Parameter.empty))
        for name in argument_order(manifest)
    ]
    return inspect.Signature([*parameters, inspect.Parameter("stream", keyword, default=None)])


def docstring_of(manifest: Manifest) -> str:
    """Return what `help(kernel)` prints: arguments, symbols, preconditions, target, launch."""
    lines = [f"{manifest.name}{signature_of(manifest)}", ""]
    if manifest.summary:
        lines += [manifest.summary, ""]
    for item in manifest.allowed:
        lines += [f"ALLOWED {item.code}: {item.message}", f"    because: {item.reason}", ""]
    lines.append("Arrays (row-major, contiguous, on one GPU; DLPack or __cuda_array_interface__):")
    width = max((len(item.name) for item in manifest.tensors), default=0)
    access = {"in": "read", "out": "written; allocated if omitted", "inout": "read and written"}
    for tensor in manifest.tensors:
        what = f"{tensor.dtype} [{', '.join(tensor.shape)}], {access[tensor.direction]}"
        lines.append(f"    {tensor.name:{width}}  {what}")
    if manifest.scalars:
        lines += ["", "Numbers:"]
        lines += [f"    {name}  {dtype}" for name, dtype in manifest.scalars]
    if manifest.symbols:
        lines += ["", "Sizes (inferred from the shapes):"]
        lines += [f"    {_size(*symbol)}" for symbol in manifest.symbols]
    if manifest.requires:
        lines += ["", "Preconditions:"]
        lines += [f"    {text}  (required by {origin})" for text, origin in manifest.requires]
    target = TARGETS.get(manifest.target)
    name = f", {target.description}" if target and target.description else ""
    major, minor = manifest.runs_on
    lines += [
        "",
        "stream: an integer handle, a torch or cupy stream, or an object with __cuda_stream__;",
        "    default: the current stream of the first array's framework.",
        "Returns the output, or a tuple of them.",
        f"Runs on compute capability {major}.{minor} ({manifest.target}{name}): "
        f"{manifest.threads} threads, {manifest.shared_bytes:,} bytes of shared memory, "
        f"grid {manifest.grid}.",
    ]
    return "\n".join(lines)


def _size(name: str, minimum: int, maximum: int, multiple: int) -> str:
    text = f"{minimum} <= {name}"
    if maximum < 2**31 - 1:
        text += f" <= {maximum}"
    return text + (f", a multiple of {multiple}" if multiple > 1 else "")


def by_name(
    manifest: Manifest, order: tuple[str, ...], positional: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Return all arguments by name; raise PL1402 for surplus or duplicate ones."""
    if len(positional) > len(order):
        raise refuse(
            "PL1402",
            "positional",
            f"`{manifest.name}` has {plural(len(order), 'argument')}, but {len(positional)} "
            "were passed",
            expected=", ".join(order),
            found=plural(len(positional), "positional argument"),
        )
    twice = [name for name in order[: len(positional)] if name in named]
    if twice:
        raise refuse(
            "PL1402",
            twice[0],
            f"duplicate argument `{twice[0]}` of `{manifest.name}`",
            found="one value by position and one by name",
        )
    return {**dict(zip(order, positional, strict=False)), **named}
