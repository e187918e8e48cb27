"""The cubin in the driver: loaded once, resolved per context when first launched there."""

import math
from collections.abc import Mapping
from typing import Any

from pipelink_rules.diagnostics.diagnostic import DiagnosticSink
from pipelink_rules.launch.arrays import View
from pipelink_rules.launch.cluster import resident_clusters
from pipelink_rules.launch.driver import Device, Driver, LoadedKernel
from pipelink_rules.launch.errors import LaunchError, raise_if_any, refuse
from pipelink_rules.launch.jitter import Jitter
from pipelink_rules.launch.watchdog import Watchdog
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.model.target import TARGETS


class CubinImage:
    """A cubin and the contexts in which it is loaded."""

    def __init__(
        self, manifest: Manifest, cubin: bytes, driver: Driver, watchdog_cycles: int | None = None
    ):
        self.manifest = manifest
        self.driver = driver
        self.watchdog: Watchdog | None = None
        self.jitter: Jitter | None = None
        self._cubin = cubin
        self._watchdog_cycles = watchdog_cycles
        self.library: Any = None  # once loaded
        self._loaded: dict[int, LoadedKernel] = {}

    def loaded(self, ordinal: int | None) -> LoadedKernel:
        """Return the entry in the current context, else in the primary one of `ordinal`."""
        context = self.driver.current_context() or self.driver.make_current(ordinal or 0)
        if context not in self._loaded:
            self._loaded[context] = self._load(context)
        return self._loaded[context]

    def failed(self, name: str, result: Any) -> LaunchError:
        """Return the watchdog's report if there is one, otherwise the driver's error."""
        problem = self.watchdog.report() if self.watchdog else None
        return problem or self.driver.failure(name, result)

    def _load(self, context: int) -> LoadedKernel:
        driver = self.driver
        device = driver.device(int(driver.call("cuCtxGetDevice")))
        check_device(self.manifest, device)
        with driver.relaxed_capture():
            if self.library is None:
                options = (None, None, 0, None, None, 0)
                self.library = driver.call("cuLibraryLoadData", self._cubin, *options)
            name = self.manifest.entry.encode()
            kernel = driver.call("cuLibraryGetKernel", self.library, name)
            function = driver.call("cuKernelGetFunction", kernel)
            self._allow_shared(function)
            self._instrument(device)
        clusters = resident_clusters(self.manifest, function, driver)
        if not clusters and math.prod(self.manifest.cluster) > 1:
            size = "x".join(map(str, self.manifest.cluster))
            raise device_refused(self.manifest, device, f"room for a cluster of {size} CTAs")
        return LoadedKernel(context, device, function, clusters)

    def _instrument(self, device: Device) -> None:
        """Pass the addresses of its buffers to the linked runtime, in the current context."""
        manifest, driver = self.manifest, self.driver
        if manifest.runtime in ("watchdog", "record", "jitter"):
            self.watchdog = self.watchdog or Watchdog(manifest, driver, self._watchdog_cycles)
            self.watchdog.attach(self.library, driver)
        if manifest.runtime == "jitter":
            ctas = device.sms * manifest.occupancy
            self.jitter = self.jitter or Jitter(driver, ctas, manifest.threads // 32)
            self.jitter.attach(self.library)

    def _allow_shared(self, function: Any) -> None:
        attribute = self.driver.api.CUfunction_attribute
        shared = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.driver.call("cuFuncSetAttribute", function, shared, self.manifest.shared_bytes)
        x, y, z = self.manifest.cluster
        if x * y * z > 8:
            wide = attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            self.driver.call("cuFuncSetAttribute", function, wide, 1)


def loaded_for(image: CubinImage, views: Mapping[str, View]) -> LoadedKernel:
    """Return the entry in the current context; raise PL1408 for arrays on another device."""
    places = {
        name: view.device if view.device is not None else image.driver.device_of(view.pointer)
        for name, view in views.items()
    }
    loaded = image.loaded(next(iter(places.values()), None))
    ordinal = loaded.device.ordinal
    errors = DiagnosticSink()
    for name, place in places.items():
        if place != ordinal:
            copy, current = f"copy `{name}` to device {ordinal}", f"make device {place} current"
            errors.add(
                "PL1408",
                f"`{name}` is not on the current device",
                expected=f"device {ordinal} ({loaded.device.name}), the current one",
                found="host memory" if place == -1 else f"device {place}",
                suggestions=(copy if place == -1 else f"{copy}, or {current}",),
                subject=name,
            )
    raise_if_any(errors.items)
    return loaded


def check_device(manifest: Manifest, device: Device) -> None:
    """Raise PL1401 if the cubin cannot run on the device."""
    needed, exact = manifest.runs_on, manifest.target.endswith("a")
    same_major = device.capability[0] == needed[0] and device.capability >= needed
    if device.capability == needed or (same_major and not exact):
        return
    major, minor = needed
    what = TARGETS[manifest.target].description if manifest.target in TARGETS else ""
    expected = f"compute capability {major}.{minor}{f' ({what})' if what else ''}"
    raise device_refused(manifest, device, expected)


def device_refused(manifest: Manifest, device: Device, expected: str) -> LaunchError:
    """Return the error for a GPU that the cubin was not linked for."""
    major, minor = device.capability
    arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    return refuse(
        "PL1401",
        device.name,
        f"`{manifest.name}` is linked for {manifest.target} and cannot run on {device.name}",
        expected=expected,
        found=f"device {device.ordinal}: {device.name}, compute capability {major}.{minor}",
        suggestions=(f'add "{arch}" to `archs` of the megakernel and build it again',),
    )
