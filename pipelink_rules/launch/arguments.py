"""Check of the arguments of a call, and the symbols that their shapes determine.

All errors are collected: a call with three invalid arguments raises one exception.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, Unpack

from pipelink_rules.diagnostics.diagnostic import Details, Diagnostic
from pipelink_rules.diagnostics.wording import nearest, plural
from pipelink_rules.expression.evaluate import names_in, solve_for, value_of
from pipelink_rules.expression.parse import ExpressionError
from pipelink_rules.launch.arrays import NotAnArray, View, view_of
from pipelink_rules.launch.errors import finding
from pipelink_rules.model.linked_kernel import Manifest, TensorArgument

_RANGES = {"i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1)}


def check_names(manifest: Manifest, names: Mapping[str, Any]) -> list[Diagnostic]:
    """Return errors for unknown keywords and missing inputs or scalars (PL1402)."""
    tensors = {tensor.name: tensor for tensor in manifest.tensors}
    known = [*tensors, *(name for name, _ in manifest.scalars)]
    found = []
    for name in names:
        if name not in known:
            near = nearest(name, known)
            found.append(
                finding(
                    "PL1402",
                    name,
                    f"`{manifest.name}` has no argument `{name}`",
                    expected=f"one of {', '.join(known)}",
                    found=name,
                    suggestions=(f"an argument with a similar name exists: `{near}`",)
                    if near
                    else (),
                )
            )
    for name in known:
        optional = name in tensors and tensors[name].direction == "out"
        if names.get(name) is None and not optional:
            found.append(
                finding(
                    "PL1402",
                    name,
                    f"missing argument `{name}` of `{manifest.name}`",
                    expected=described(tensors[name]) if name in tensors else "a number",
                    found="no value",
                )
            )
    return found


def check_arrays(
    manifest: Manifest, arguments: Mapping[str, Any], stream: int
) -> tuple[dict[str, View], list[Diagnostic]]:
    """Check that every array is on a GPU and has the required dtype, rank and layout."""
    views: dict[str, View] = {}
    found: list[Diagnostic] = []
    for tensor in manifest.tensors:
        array = arguments.get(tensor.name)
        if array is None:
            continue
        try:
            view = views[tensor.name] = view_of(array, stream)
        except NotAnArray:
            found.append(
                finding(
                    "PL1403",
                    tensor.name,
                    f"`{tensor.name}` is not a GPU array",
                    expected=f"{described(tensor)}, with DLPack or __cuda_array_interface__",
                    found=f"an object of type {type(array).__name__}",
                    suggestions=("pass a torch, cupy or jax array",),
                )
            )
            continue
        except Exception as problem:  # the framework's own: deleted, lazy or abstract arrays
            found.append(
                finding(
                    "PL1403",
                    tensor.name,
                    f"`{tensor.name}` cannot be read as an array",
                    expected=described(tensor),
                    found=f"{type(problem).__name__}: {problem}"[:200],
                )
            )
            continue
        if view.device == -1:
            found.append(
                finding(
                    "PL1403",
                    tensor.name,
                    f"`{tensor.name}` is in host memory",
                    expected=described(tensor),
                    found=f"{type(array).__module__}.{type(array).__name__} on the host",
                    suggestions=(f"copy it to the GPU, for example with `{tensor.name}.cuda()`",),
                )
            )
            continue
        found += _check_view(tensor, view)
    return views, found


def described(tensor: TensorArgument) -> str:
    """Return `a: bf16 [M, K]`."""
    return f"{tensor.name}: {tensor.dtype} [{', '.join(tensor.shape)}]"


def _check_view(tensor: TensorArgument, view: View) -> list[Diagnostic]:
    name, found = tensor.name, []

    def add(code: str, message: str, **details: Unpack[Details]) -> None:
        found.append(finding(code, name, message, **details))

    if view.dtype != tensor.dtype:
        add(
            "PL1404",
            f"`{name}` is {view.dtype}, but {tensor.dtype} is required",
            expected=described(tensor),
            found=f"{name}: {view.dtype} {list(view.shape)}",
            suggestions=(f"convert `{name}` to {tensor.dtype}",),
        )
    if len(view.shape) != len(tensor.shape):
        add(
            "PL1405",
            f"`{name}` has {plural(len(view.shape), 'dimension')}, but {len(tensor.shape)} "
            "are required",
            expected=described(tensor),
            found=f"shape {list(view.shape)}",
        )
    elif not view.contiguous:
        add(
            "PL1406",
            f"`{name}` is not contiguous",
            expected=f"{described(tensor)}, row-major without gaps",
            found=f"shape {list(view.shape)} with strides {list(view.strides or ())}",
            suggestions=(f"pass a contiguous copy, for example `{name}.contiguous()`",),
        )
    if view.pointer % tensor.align:
        add(
            "PL1407",
            f"`{name}` is not aligned to {tensor.align} bytes",
            expected=f"an address that is a multiple of {tensor.align}",
            found=f"{view.pointer:#x}, {view.pointer % tensor.align} bytes past a multiple",
            suggestions=("pass a whole allocation, or a slice that starts at an aligned element",),
        )
    if view.readonly and tensor.direction != "in":
        add(
            "PL1418",
            f"output `{name}` is a read-only array",
            expected=f"{described(tensor)}, writable",
            found="an array that its owner marks read-only",
            suggestions=(f"pass a writable array for `{name}`",),
        )
    return found


def unify(
    tensors: tuple[TensorArgument, ...], views: Mapping[str, View]
) -> tuple[dict[str, int], list[Diagnostic]]:
    """Return the symbols that the shapes determine, and every mismatching extent (PL1405)."""
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
    found = []
    for tensor, axis, text, extent in extents:
        if names_in(text) - set(symbols):
            continue
        wanted = value_of(text, symbols)
        if wanted != extent:
            known = [f"{name} = {symbols[name]} from {origin[name]}" for name in names_in(text)]
            found.append(
                finding(
                    "PL1405",
                    tensor.name,
                    f"`{tensor.name}` has extent {extent} on axis {axis}, but {wanted} is required",
                    expected=f"{described(tensor)} with {text} = {wanted}",
                    found=f"shape {list(views[tensor.name].shape)}",
                    notes=tuple(sorted(known)) if known != [f"{text} = {wanted}"] else (),
                )
            )
    return symbols, found


def _with(text: str, symbols: Mapping[str, int]) -> str:
    """Return the expression with the known symbols written as numbers."""
    return re.sub(r"[A-Za-z_]\w*", lambda m: str(symbols.get(m.group(), m.group())), text)


def check_symbols(manifest: Manifest, symbols: Mapping[str, int]) -> list[Diagnostic]:
    """Check ranges and multiples of the symbols (PL1409) and the preconditions (PL1410)."""
    found = []
    for name, minimum, maximum, multiple in manifest.symbols:
        if name not in symbols:
            wanted = f"an argument with extent {name}"
            found.append(finding("PL1409", name, f"cannot infer size {name}", expected=wanted))
            continue
        value = symbols[name]
        if not minimum <= value <= maximum:
            found.append(
                finding(
                    "PL1409",
                    name,
                    f"{name} = {value} is out of range",
                    expected=f"{minimum} <= {name} <= {maximum}",
                    found=f"{name} = {value}",
                )
            )
        elif value % multiple:
            padded = -(-value // multiple) * multiple
            found.append(
                finding(
                    "PL1409",
                    name,
                    f"{name} = {value} is not a multiple of {multiple}",
                    expected=f"{name} % {multiple} == 0",
                    found=f"{name} = {value}, remainder {value % multiple}",
                    suggestions=(f"pad {name} to {padded}",),
                )
            )
    if not found:
        for text, origin in manifest.requires:
            found += _check_condition(text, origin, symbols)
    return found


def _check_condition(text: str, origin: str, symbols: Mapping[str, int]) -> list[Diagnostic]:
    try:
        if value_of(text, symbols):
            return []
        values = ", ".join(f"{name} = {symbols[name]}" for name in sorted(names_in(text)))
    except ExpressionError as problem:
        values = str(problem)
    return [
        finding(
            "PL1410",
            text,
            f"precondition `{text}` is false",
            expected=f"{text}, required by {origin}",
            found=values,
        )
    ]


def check_scalars(
    manifest: Manifest, arguments: Mapping[str, Any]
) -> tuple[dict[str, int | float], list[Diagnostic]]:
    """Return the numbers of the scalar keywords (PL1411)."""
    values: dict[str, int | float] = {}
    found = []
    for name, dtype in manifest.scalars:
        value = arguments.get(name)
        if value is None:
            continue
        wanted: Any = (int, float) if dtype == "f32" else int
        low, high = _RANGES.get(dtype, (-3.4028236e38, 3.4028236e38))
        number = value.item() if type(value).__module__ == "numpy" else value
        if not isinstance(number, wanted) or isinstance(number, bool):
            shown = f"{type(value).__module__}.{type(value).__name__}"
        elif math.isfinite(number) and not low <= number <= high:
            shown = str(number)
        else:
            values[name] = float(number) if dtype == "f32" else int(number)
            continue
        found.append(
            finding(
                "PL1411",
                name,
                f"`{name}` is not a valid {dtype} number",
                expected=f"a Python number between {low:g} and {high:g}",
                found=shown,
                suggestions=(
                    f"pass a Python or numpy number: `{'float' if dtype == 'f32' else 'int'}"
                    f"({name})`",
                ),
            )
        )
    return values, found
