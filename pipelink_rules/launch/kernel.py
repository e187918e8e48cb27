"""A megakernel as a callable: checked arguments in, launches out."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipelink_rules.diagnostics.diagnostic import DiagnosticSink
from pipelink_rules.expression.evaluate import names_in, value_of
from pipelink_rules.launch import arguments
from pipelink_rules.launch.arrays import View, key_of, reader_for
from pipelink_rules.launch.cluster import launch_config, resident_grid
from pipelink_rules.launch.cubin_loader import CubinImage, loaded_for
from pipelink_rules.launch.driver import Driver
from pipelink_rules.launch.errors import raise_if_any, refuse
from pipelink_rules.launch.frameworks import Allocator, allocator_for, current_stream, stream_handle
from pipelink_rules.launch.instrumented import Instrumented
from pipelink_rules.launch.packing import Packed, PreparedCall, pack
from pipelink_rules.launch.signature import argument_order, by_name, docstring_of, signature_of
from pipelink_rules.launch.workspace import WorkspacePool, ZeroedRange, capture_of
from pipelink_rules.model.linked_kernel import Manifest

CACHED_CALLS = 256  # distinct argument sets whose packed parameters are kept, per kernel


@dataclass(frozen=True)
class _Call:
    """A checked and packed set of arguments in one context."""

    function: Any
    grid: int
    packed: Packed
    configs: dict[int, Any]  # stream -> CUlaunchConfig, where plain numbers do not do
    symbols: Mapping[str, int]
    clear: ZeroedRange | None = None  # what has to be zero when it begins


class Kernel(Instrumented):
    """A linked megakernel.  Call it with the declared keywords; see `help(kernel)`.

    A call whose arrays have the pointers, shapes and dtypes of an earlier one reuses the packed
    parameters of that call: no allocation, no synchronization, safe in a CUDA graph capture.
    """

    def __init__(
        self,
        manifest: Manifest,
        cubin: bytes,
        *,
        allocator: Allocator | None = None,
        watchdog_cycles: int | None = None,
        driver: Any = None,
    ):
        self.manifest = manifest
        self.__name__ = manifest.name
        self.__doc__ = docstring_of(manifest)
        self._cubin = cubin
        self._allocator = allocator
        self._driver_given = driver
        self._watchdog_cycles = watchdog_cycles
        self._order = argument_order(manifest)
        self._scalars = tuple(name for name, _ in manifest.scalars)
        self._arrays = tuple(name for name in self._order if name not in self._scalars)
        self._outputs = tuple(item.name for item in manifest.tensors if item.direction != "in")
        self._dtypes = {item.name: item.dtype for item in manifest.tensors}
        self._calls: dict[Hashable, _Call] = {}  # in order of use: the first is the oldest
        self._last: tuple[Any, Any] = (None, None)  # key and call of the last one
        self._shapes: dict[Hashable, dict[str, tuple[int, ...]]] = {}  # outputs left out
        self._image: CubinImage | None = None
        self._current: Any = None  # cuCtxGetCurrent
        self._launch: Any = None  # cuLaunchKernel
        self._size = (manifest.threads, manifest.shared_bytes)
        self._owns = bool(manifest.workspace)
        self._configured = math.prod(manifest.cluster) > 1 or self._owns or manifest.coresident
        self._workspaces: Any = None  # the WorkspacePool, with the image

    def __repr__(self) -> str:
        return f"<pipelink kernel {self.manifest.name} for {self.manifest.target}>"

    @property
    def __signature__(self) -> Any:
        return signature_of(self.manifest)

    def __call__(self, *positional: Any, stream: Any = None, **named: Any) -> Any:
        call, named, handle = self._find(positional, named, stream)
        self._run(call, handle)
        outputs = self._outputs
        if len(outputs) == 1:
            return named[outputs[0]]
        return tuple(named[name] for name in outputs)

    def bind(self, *positional: Any, stream: Any = None, **named: Any) -> PreparedCall:
        """Check and pack a call once; the result launches it without further checks."""
        call, named, handle = self._find(positional, named, stream)
        return PreparedCall(partial(self._run, call, handle), call, named)

    def prepare(self, *positional: Any, stream: Any = None, **named: Any) -> None:
        """Check and pack a call, and load the cubin, without launching (before a capture)."""
        self._find(positional, named, stream)

    def check(self) -> None:
        """Raise WatchdogError if a watchdog megakernel has reported a hang."""
        watchdog = self._image.watchdog if self._image else None
        if watchdog and (problem := watchdog.report()):
            raise problem

    def synchronize(self, stream: Any = None) -> None:
        """Wait for the stream (or the context) and raise its error."""
        if self._image is None:
            return
        api = self._image.driver.api
        if stream is None:
            result = api.cuCtxSynchronize()
        else:
            result = api.cuStreamSynchronize(stream_handle(stream))
        if result[0]:
            raise self._image.failed("cuStreamSynchronize", result[0])
        self.check()

    def grid_of(self, symbols: Mapping[str, int], sms: int, clusters: int = 0) -> int:
        """Return the number of CTAs of a launch; clusters: resident ones, 0 = derived from SMs."""
        occupancy = self.manifest.occupancy
        fitting = sms * occupancy // math.prod(self.manifest.cluster)
        known = {**symbols, "sms": sms, "occupancy": occupancy}
        return value_of(self.manifest.grid, {**known, "clusters": clusters or max(1, fitting)})

    # The path of every call -------------------------------------------------------------------

    def _find(
        self, positional: tuple[Any, ...], named: dict[str, Any], stream: Any
    ) -> tuple[_Call, dict[str, Any], int]:
        """Return the packed call for these arguments, cached or checked and packed now."""
        if positional:
            named = by_name(self.manifest, self._order, positional, named)
        try:
            if len(named) != len(self._order):
                named = self._made(named)
            if stream is None:
                handle = current_stream(named[self._arrays[0]]) if self._arrays else 0
            else:
                handle = stream if type(stream) is int else stream_handle(stream)
            key = self._key(named, handle)
            if len(named) == len(self._order):
                if key == self._last[0]:  # the same again: cheaper than hashing it
                    return self._last[1], named, handle
                place = tuple(key)
                call = self._calls.pop(place, None)
                if call is not None:
                    self._calls[place] = call
                    self._last = (key, call)
                    return call, named, handle
        except (KeyError, TypeError, AttributeError):
            pass  # something is new or wrong: the full check reports it
        return self._first(named, stream)

    def _key(self, named: Mapping[str, Any], stream: int) -> list[Hashable]:
        """Return what decides whether a packed call fits; KeyError for a new type of array."""
        key = key_of([named[name] for name in self._arrays], stream)
        key.append(int(self._current()[1]))
        for name in self._scalars:
            key.append(named[name])
        if self._owns:
            key.append((stream, capture_of(self._ready().driver.api, stream)))
        return key

    def _run(self, call: _Call, stream: int) -> None:
        """Launch a packed call."""
        if self._configured:
            result = self._launch_configured(call, stream)
        else:
            function, grid, address = call.function, call.grid, call.packed.address
            threads, shared = self._size
            result = self._launch(function, grid, 1, 1, threads, 1, 1, shared, stream, address, 0)
        if result[0]:
            raise self._ready().failed("cuLaunchKernel", result[0])

    def _made(self, named: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with outputs allocated as in an earlier call of these shapes."""
        arrays = [named[name] for name in self._arrays if name not in self._outputs]
        shapes = self._shapes[tuple(tuple(array.shape) for array in arrays)]
        allocate = self._allocator or allocator_for(arrays[0])
        if allocate is None:
            return named
        made = {
            name: allocate(shape, self._dtypes[name], arrays[0])
            for name, shape in shapes.items()
            if named.get(name) is None
        }
        return {**named, **made}

    def _first(self, named: dict[str, Any], stream: Any) -> tuple[_Call, dict[str, Any], int]:
        """Check and pack everything, and cache the result."""
        raise_if_any(arguments.check_names(self.manifest, named))
        like = next((named[name] for name in self._arrays if named.get(name) is not None), None)
        handle = stream_handle(stream) if stream is not None else current_stream(like)
        errors = DiagnosticSink()
        views = arguments.check_arrays(self.manifest, named, handle, errors)
        numbers = arguments.check_scalars(self.manifest, named, errors)
        symbols = arguments.unify(self.manifest.tensors, views, errors)
        raise_if_any(errors.items or arguments.check_symbols(self.manifest, symbols))
        named = self._with_outputs(named, views, symbols, like)
        loaded = loaded_for(self._ready(), views)
        numbers.update(symbols)
        grid = self.grid_of(symbols, loaded.device.sms, loaded.clusters)
        if self.manifest.coresident:
            grid = resident_grid(self.manifest, loaded, grid, self._ready().driver)
        workspace, clear = self._workspaces.of(loaded.context, handle, symbols)
        places: dict[str, View | int] = {**views, **workspace}
        packed = pack(self.manifest.parameters, places, numbers, self._ready().driver)
        call = _Call(loaded.function, grid, packed, {}, symbols, clear)
        for name in self._arrays:
            reader_for(named[name])  # makes the type known
        while len(self._calls) >= CACHED_CALLS:
            self._calls.pop(next(iter(self._calls)), None)
        self._calls[tuple(self._key(named, handle))] = call
        return call, named, handle

    def _with_outputs(
        self, named: dict[str, Any], views: dict[str, View], symbols: Mapping[str, int], like: Any
    ) -> dict[str, Any]:
        """Allocate the omitted outputs; raise PL1412 if there is no allocator."""
        missing = [name for name in self._outputs if name not in views]
        if not missing:
            return named
        shapes = {
            tensor.name: tuple(value_of(text, symbols) for text in tensor.shape)
            for tensor in self.manifest.tensors
            if tensor.name in missing
            and all(names_in(text) <= set(symbols) for text in tensor.shape)
        }
        named = dict(named)
        allocate = self._allocator or allocator_for(like)
        for name in missing:
            array = allocate(shapes[name], self._dtypes[name], like) if allocate else None
            if array is None:
                raise refuse(
                    "PL1412",
                    name,
                    f"cannot allocate the omitted output `{name}`",
                    expected=f"an allocator for {self._dtypes[name]} {list(shapes.get(name, ()))}",
                    found=f"no allocator for {type(like).__module__}.{type(like).__name__}",
                    suggestions=(f"pass `{name}`", "or pass `allocator=` to `load`"),
                )
            named[name] = array
        errors = DiagnosticSink()
        made = {name: named[name] for name in missing}
        views.update(arguments.check_arrays(self.manifest, made, 0, errors))
        raise_if_any(errors.items)
        inputs = tuple(views[name].shape for name in self._arrays if name not in self._outputs)
        if len(missing) == len(self._outputs) and len(self._shapes) < CACHED_CALLS:
            self._shapes[inputs] = shapes
        return named

    def _ready(self) -> CubinImage:
        if self._image is None:
            driver = Driver(self._driver_given)
            self._image = CubinImage(self.manifest, self._cubin, driver, self._watchdog_cycles)
            self._workspaces = WorkspacePool(self.manifest, driver)
            self._launch = driver.api.cuLaunchKernel
            self._current = driver.api.cuCtxGetCurrent
        return self._image

    def _launch_configured(self, call: _Call, stream: int) -> Any:
        api = self._ready().driver.api
        if call.clear is not None:
            result = api.cuMemsetD32Async(call.clear.pointer, 0, call.clear.words, stream)
            if result[0]:
                return result
        config = call.configs.get(stream)
        if config is None:
            config = call.configs[stream] = launch_config(self.manifest, call.grid, stream, api)
        return api.cuLaunchKernelEx(config, call.function, call.packed.address, 0)
