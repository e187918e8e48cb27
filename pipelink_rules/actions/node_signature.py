"""What stands for a noun in the signature of a node?  A digest over all of its values."""

from __future__ import annotations

import hashlib

from pipelink_rules.actions.strip_locations import strip_locations


class Signatures:
    """Digests of nouns, each computed once."""

    def __init__(self) -> None:
        # The noun is kept with its digest, so that no other one gets its id.
        self._known: dict[tuple[int, bool], tuple[object, str]] = {}

    def of(self, noun: object) -> str:
        """sha256 over the text of a frozen noun."""
        return self._digest(noun, code=False)

    def of_code(self, noun: object) -> str:
        """The same without places and prose."""
        return self._digest(noun, code=True)

    def _digest(self, noun: object, *, code: bool) -> str:
        kept = self._known.get((id(noun), code))
        if kept is None:
            # `repr` names every field and value, and is several times faster than JSON.
            text = repr(strip_locations(noun) if code else noun)
            kept = (noun, hashlib.sha256(text.encode()).hexdigest())
            self._known[id(noun), code] = kept
        return kept[1]
