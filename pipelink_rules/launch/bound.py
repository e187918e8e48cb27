"""A megakernel with its arguments fixed: nothing is read or checked between call and driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class PreparedCall:
    """What `Kernel.bind` gives: call it to launch on the stream it was bound to.

    It keeps the arrays alive; do not resize them or change their storage meanwhile.
    """

    def __init__(
        self, launch: Callable[[], Any], failed: Callable[[str, Any], Exception], call: Any = None
    ):
        self._launch, self._failed, self.call = launch, failed, call

    def __call__(self) -> None:
        result = self._launch()
        if result[0]:
            raise self._failed("cuLaunchKernel", result[0])
