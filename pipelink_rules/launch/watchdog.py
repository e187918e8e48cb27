"""The report of the watchdog runtime about a wait that exceeded its limit.

The watchdog runtime writes one report to pinned host memory and traps.  The trap loses the
context, not the report.  Words (u32): 0 magic, 1 site, 2 operation, 3 stage, 4 phase, 5 block,
6 thread, 7-8 the mbarrier's 64-bit state, 9 kilocycles waited.
"""

import ctypes
import struct
from typing import Any

from pipelink_rules.diagnostics.diagnostic import report
from pipelink_rules.diagnostics.wording import list_of, plural
from pipelink_rules.launch.driver import Driver
from pipelink_rules.launch.errors import WatchdogError
from pipelink_rules.model.linked_kernel import Manifest, Site

MAGIC = 0x504C5744  # "PLWD"
REPORT = "pl_watchdog_report"  # u64 of the runtime: device address of the report
LIMIT = "pl_watchdog_limit"  # u64 of the runtime: cycles that a wait may last
_BYTES = 64
_OPERATIONS = ("acquire", "wait", "named barrier", "another wait", "wait_until")
_UNTIL = 4


class Watchdog:
    """The report of one kernel, allocated once and passed to every context of the kernel."""

    def __init__(self, manifest: Manifest, driver: Driver, cycles: int | None = None):
        self._manifest = manifest
        self._cycles = cycles  # None = the runtime's own limit
        self._host = driver.mapped_memory(_BYTES)

    def attach(self, library: Any, driver: Driver) -> None:
        """Write the report's device address into the runtime's global, in the current context."""
        address = int(driver.call("cuMemHostGetDevicePointer", self._host, 0))
        driver.write_global(library, REPORT, struct.pack("<Q", address))
        if self._cycles is not None:
            driver.write_global(library, LIMIT, struct.pack("<Q", self._cycles))

    def report(self) -> WatchdogError | None:
        """Return the exception for the written report, or None."""
        words = (ctypes.c_uint32 * 10).from_address(self._host)
        return explain(self._manifest, tuple(words)) if words[0] == MAGIC else None


def explain(manifest: Manifest, words: tuple[int, ...]) -> WatchdogError:
    """Return the report as an exception."""
    _, number, operation, stage, phase, block, thread, low, high, kilocycles = words
    site = {item.number: item for item in manifest.sites}.get(number)
    place = f"{site.instance}.{site.role}.{site.port}" if site else f"site {number}"
    where = f"stage {stage}, phase {phase}" if operation < 2 else f"barrier {stage}"
    state = f"mbarrier state {high << 32 | low:#018x}"
    if operation == _UNTIL:
        where, state = f"counter {stage}", plural(low, "signal")
    diagnostic = report(
        "PL1416",
        f"`{manifest.name}` hangs: {_waiting(site, number, operation)} ({where})",
        expected=plural(phase, "signal") if operation == _UNTIL else _expected(site, operation),
        found=f"{state} after {kilocycles:,} thousand cycles, in block {block}, thread {thread}",
        notes=("the CUDA context is lost; restart the process",),
        suggestions=(
            *(  # the first suspects
                f"fix the allowed {item.code}: {item.message} (allowed because: {item.reason})"
                for item in manifest.allowed
            ),
            _suspect(manifest, site, operation),
        ),
        subject=place,
    )
    return WatchdogError(diagnostic, site, stage, phase)


def _waiting(site: Site | None, number: int, operation: int) -> str:
    verb = _OPERATIONS[operation if operation < len(_OPERATIONS) else 3]
    if site is None:
        return f"site {number} never returns from `{verb}`"
    return f"`{site.instance}.{site.role}` never returns from `{verb} {site.port}`"


def _expected(site: Site | None, operation: int) -> str:
    if site is None:
        return "a site of the manifest: cubin and manifest are not from one link"
    empty, full = (plural(n, "arrival") for n in (site.empty_arrivals, site.full_arrivals))
    if operation == 0:
        stages = plural(site.stages, "stage")
        return f"{empty} on the empty barrier of `{site.channel}` ({stages})"
    if operation == 1:
        return f"{full} on the full barrier of `{site.channel}` and its expected bytes"
    return f"{site.empty_arrivals} threads at the named barrier"


def _suspect(manifest: Manifest, site: Site | None, operation: int) -> str:
    ends = (
        f"{item.instance}.{item.role}.{item.port}"
        for item in manifest.sites
        if site and item.channel == site.channel and item.number != site.number and item.channel
    )
    others = list_of(ends, "or")
    if not others:
        return "look for a thread that exits early or an arrival count that does not match"
    if operation == _UNTIL:
        return f"check that {others} signals for every work tile"
    return f"check that {others} {'releases' if operation == 0 else 'commits'} every item"
