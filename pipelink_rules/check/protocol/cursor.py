"""Where does one end of a ring stand?"""

from __future__ import annotations


class Cursor:
    """One end of a ring: the next item, and the items of the current call of the entry."""

    def __init__(self) -> None:
        self.next = 0
        self.start = 0  # first item of this call

    @property
    def current(self) -> int | None:
        """The item last acquired or waited for in this call."""
        return self.next - 1 if self.next > self.start else None
