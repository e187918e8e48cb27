"""Check of the arguments of a call, and the symbols that their shapes determine.

All errors are collected: a call with three invalid arguments raises one exception.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipelink_rules.diagnostics.diagnostic import Diagnostic, DiagnosticSink, report
from pipelink_rules.diagnostics.wording import nearest, plural
from pipelink_rules.expression.evaluate import names_in, solve_for, value_of
from pipelink_rules.expression.parse import ExpressionError
from pipelink_rules.launch.arrays import NotAnArray, View, view_of
from pipelink_rules.model.linked_kernel import Manifest, TensorArgument

_RANGES = {"i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1)}


def check_names(manifest: Manifest, names: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Yield errors for unknown keywords and missing inputs or scalars (PL1402)."""
    tensors = {tensor.name: tensor for tensor in manifest.tensors}
    known = [*tensors, *(name for name, _ in manifest.scalars)]
    for name in names:
        if name not in known:
            near = nearest(name, known)
            yield report(
                "PL1402",
                f"`{manifest.name}` has no argument `{name}`",
                expected=f"one of {', '.join(known)}",
                found=name,
                suggestions=(f"an argument with a similar name exists: `{near}`",) if near else (),
                subject=name,
            )
    for name in known:
        optional = name in tensors and tensors[name].direction == "out"
        if names.get(name) is None and not optional:
            yield report(
                "PL1402",
                f"missing argument `{name}` of `{manifest.name}`",
                expected=described(tensors[name]) if name in tensors else "a number",
                found="no value",
                subject=name,
            )


def check_arrays(
    manifest: Manifest, arguments: Mapping[str, Any], stream: int, errors: DiagnosticSink
) -> dict[str, View]:
    """Check that every array is on a GPU and has the required dtype, rank and layout."""
    views: dict[str, View] = {}
    for tensor in manifest.tensors:
        name, array = tensor.name, arguments.get(tensor.name)
        if array is None:
            continue
        kind, wanted = type(array), described(tensor)
        suggestions: tuple[str, ...] = ()
        try:
            view = views[name] = view_of(array, stream)
        except NotAnArray:
            problem, found = "is not a GPU array", f"an object of type {kind.__name__}"
            wanted += ", with DLPack or __cuda_array_interface__"
            suggestions = ("pass a torch, cupy or jax array",)
        except Exception as error:  # the framework's own: deleted, lazy or abstract arrays
            problem, found = "cannot be read as an array", f"{type(error).__name__}: {error}"[:200]
        else:
            if view.device != -1:
                _check_view(tensor, view, errors)
                continue
            problem, found = "is in host memory", f"{kind.__module__}.{kind.__name__} on the host"
            suggestions = (f"copy it to the GPU, for example with `{name}.cuda()`",)
        errors.add(
            "PL1403",
            f"`{name}` {problem}",
            expected=wanted,
            found=found,
            suggestions=suggestions,
            subject=name,
        )
    return views


def described(tensor: TensorArgument) -> str:
    """Return `a: bf16 [M, K]`."""
    return f"{tensor.name}: {tensor.dtype} [{', '.join(tensor.shape)}]"


def _check_view(tensor: TensorArgument, view: View, errors: DiagnosticSink) -> None:
    name, shape = tensor.name, list(view.shape)
    if view.dtype != tensor.dtype:
        errors.add(
            "PL1404",
            f"`{name}` is {view.dtype}, but {tensor.dtype} is required",
            expected=described(tensor),
            found=f"{name}: {view.dtype} {shape}",
            suggestions=(f"convert `{name}` to {tensor.dtype}",),
            subject=name,
        )
    if len(shape) != len(tensor.shape):
        errors.add(
            "PL1405",
            f"`{name}` has {plural(len(shape), 'dimension')}, but {len(tensor.shape)} are required",
            expected=described(tensor),
            found=f"shape {shape}",
            subject=name,
        )
    elif not view.contiguous:
        errors.add(
            "PL1406",
            f"`{name}` is not contiguous",
            expected=f"{described(tensor)}, row-major without gaps",
            found=f"shape {shape} with strides {list(view.strides or ())}",
            suggestions=(f"pass a contiguous copy, for example `{name}.contiguous()`",),
            subject=name,
        )
    if view.pointer % tensor.align:
        errors.add(
            "PL1407",
            f"`{name}` is not aligned to {tensor.align} bytes",
            expected=f"an address that is a multiple of {tensor.align}",
            found=f"{view.pointer:#x}, {view.pointer % tensor.align} bytes past a multiple",
            suggestions=("pass a whole allocation, or a slice that starts at an aligned element",),
            subject=name,
        )
    if view.readonly and tensor.direction != "in":
        errors.add(
            "PL1418",
            f"output `{name}` is a read-only array",
            expected=f"{described(tensor)}, writable",
            found="an array that its owner marks read-only",
            suggestions=(f"pass a writable array for `{name}`",),
            subject=name,
        )


def unify(
    tensors: tuple[TensorArgument, ...], views: Mapping[str, View], errors: DiagnosticSink
) -> dict[str, int]:
    """Return the symbols that the shapes determine; report every mismatching extent (PL1405)."""
    symbols: dict[str, int] = {}
    origin: dict[str, str] = {}
    extents = [
        (tensor, axis, text, views[tensor.name].shape[axis])
        for tensor in tensors
        if tensor.name in views and len(views[tensor.name].shape) == len(tensor.shape)
        for axis, text in enumerate(tensor.shape)
    ]
    for tensor, axis, text, extent in extents:
        if text.isidentifier() and text not in symbols:
            symbols[text], origin[text] = extent, f"{tensor.name}.shape[{axis}]"
    for tensor, axis, text, extent in extents:
        unknown = names_in(text) - set(symbols)
        if len(unknown) == 1:
            name = next(iter(unknown))
            solved = solve_for(_with(text, symbols), name, extent)
            if solved is not None:
                symbols[name], origin[name] = solved, f"{tensor.name}.shape[{axis}]"
    for tensor, axis, text, extent in extents:
        if names_in(text) - set(symbols):
            continue
        wanted = value_of(text, symbols)
        if wanted != extent:
            known = [f"{name} = {symbols[name]} from {origin[name]}" for name in names_in(text)]
            errors.add(
                "PL1405",
                f"`{tensor.name}` has extent {extent} on axis {axis}, but {wanted} is required",
                expected=f"{described(tensor)} with {text} = {wanted}",
                found=f"shape {list(views[tensor.name].shape)}",
                notes=tuple(sorted(known)),
                subject=tensor.name,
            )
    return symbols


def _with(text: str, symbols: Mapping[str, int]) -> str:
    """Return the expression with the known symbols written as numbers."""
    return re.sub(r"[A-Za-z_]\w*", lambda m: str(symbols.get(m.group(), m.group())), text)


def check_symbols(manifest: Manifest, symbols: Mapping[str, int]) -> Iterator[Diagnostic]:
    """Check ranges and multiples of the symbols (PL1409), then the preconditions (PL1410)."""
    wrong = list(_check_sizes(manifest, symbols))
    yield from wrong
    if wrong:
        return
    for text, origin in manifest.requires:
        try:
            if value_of(text, symbols):
                continue
            values = ", ".join(f"{name} = {symbols[name]}" for name in sorted(names_in(text)))
        except ExpressionError as problem:
            values = str(problem)
        yield report(
            "PL1410",
            f"precondition `{text}` is false",
            expected=f"{text}, required by {origin}",
            found=values,
            subject=text,
        )


def _check_sizes(manifest: Manifest, symbols: Mapping[str, int]) -> Iterator[Diagnostic]:
    for name, minimum, maximum, multiple in manifest.symbols:
        value = symbols.get(name)
        if value is None:
            wanted = f"an argument with extent {name}"
            yield report("PL1409", f"cannot infer size {name}", expected=wanted, subject=name)
        elif not minimum <= value <= maximum:
            yield report(
                "PL1409",
                f"{name} = {value} is out of range",
                expected=f"{minimum} <= {name} <= {maximum}",
                found=f"{name} = {value}",
                subject=name,
            )
        elif value % multiple:
            yield report(
                "PL1409",
                f"{name} = {value} is not a multiple of {multiple}",
                expected=f"{name} % {multiple} == 0",
                found=f"{name} = {value}, remainder {value % multiple}",
                suggestions=(f"pad {name} to {-(-value // multiple) * multiple}",),
                subject=name,
            )


def check_scalars(
    manifest: Manifest, arguments: Mapping[str, Any], errors: DiagnosticSink
) -> dict[str, int | float]:
    """Return the numbers of the scalar keywords; report the others (PL1411)."""
    values: dict[str, int | float] = {}
    for name, dtype in manifest.scalars:
        value = arguments.get(name)
        if value is None:
            continue
        kind: Any = float if dtype == "f32" else int
        low, high = _RANGES.get(dtype, (-3.4028236e38, 3.4028236e38))
        number = value.item() if type(value).__module__ == "numpy" else value
        if not isinstance(number, (int, kind)) or isinstance(number, bool):
            shown = f"{type(value).__module__}.{type(value).__name__}"
        elif math.isfinite(number) and not low <= number <= high:
            shown = str(number)
        else:
            values[name] = kind(number)
            continue
        errors.add(
            "PL1411",
            f"`{name}` is not a valid {dtype} number",
            expected=f"a Python number between {low:g} and {high:g}",
            found=shown,
            suggestions=(f"pass a Python or numpy number: `{kind.__name__}({name})`",),
            subject=name,
        )
    return values
