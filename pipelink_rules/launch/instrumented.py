"""What a kernel that was linked with an instrumented runtime can do beyond being called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pipelink_rules.files.codec import write_json
from pipelink_rules.launch.cubin_loader import CubinImage
from pipelink_rules.launch.event_buffers import launch_with_events, require_runtime
from pipelink_rules.launch.jitter import CYCLES
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.model.recording import Recording


class Instrumented:
    """The methods of `Kernel` that need a runtime other than `release`."""

    manifest: Manifest

    def trace(
        self,
        *positional: Any,
        ctas: int = 4,
        capacity: int = 4096,
        file: str | os.PathLike[str] | None = None,
        **named: Any,
    ) -> Recording:
        """Launches twice; when did every operation of the second launch begin and end?

        ctas: so many CTAs are noted, from the first on (0 = all).  capacity: operations of a warp
        for which there is room.  file: also write the recording there, for `pipelink trace`.
        Raises PL1419 unless linked with runtime "trace".
        """
        require_runtime(self.manifest, "trace", "trace")
        return self._noted(positional, named, file, ctas=ctas, capacity=capacity, warm=1)

    def record(
        self,
        *positional: Any,
        ctas: int = 0,
        capacity: int = 2048,
        file: str | os.PathLike[str] | None = None,
        **named: Any,
    ) -> Recording:
        """Launches once; what did every warp do?  `launch.compare` holds it against the contracts.

        A launch that hangs or fails gives a recording, too: `problem` says how it ended.  file:
        also write the recording there, for `pipelink record`.  Raises PL1419 unless linked with
        runtime "record".
        """
        require_runtime(self.manifest, "record", "record")
        return self._noted(positional, named, file, ctas=ctas, capacity=capacity, warm=0)

    def seed(self, value: int, *, cycles: int = CYCLES) -> None:
        """Starts the delays of runtime "jitter" anew; before the first call seed 0 is used.

        cycles: longest usual delay before an operation, a power of two; one in 64 is eight times
        as long.  Raises PL1419 unless linked with runtime "jitter".
        """
        require_runtime(self.manifest, "jitter", "seed")
        image = self._ready()
        image.loaded(None)
        assert image.jitter is not None
        image.jitter.start(value, cycles)

    def _noted(
        self,
        positional: tuple[Any, ...],
        named: dict[str, Any],
        file: str | os.PathLike[str] | None,
        **limits: int,
    ) -> Recording:
        launch = self.bind(*positional, **named)  # type: ignore[attr-defined]
        call = launch.call
        image = self._ready()
        loaded = image.loaded(None)
        recording = launch_with_events(image, loaded, launch, call.grid, call.symbols, **limits)
        if file is not None:
            write_json(Path(file), recording)
        return recording

    def _ready(self) -> CubinImage:
        raise NotImplementedError
