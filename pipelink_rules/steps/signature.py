"""What stands for a noun in the signature of a node?  A digest over all of its values."""

from __future__ import annotations

import hashlib


class Signatures:
    """Digests of nouns, each computed once: a variant is asked for by every node it is part of."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, str]] = {}

    def of(self, noun: object) -> str:
        """sha256 over the text of a frozen noun.

        `repr` names every field and value of a dataclass, and is several times faster than JSON.
        """
        kept = self._known.get(id(noun))
        if kept is None:
            # The noun is kept with its digest, so that no other one gets its id.
            kept = (noun, hashlib.sha256(repr(noun).encode()).hexdigest())
            self._known[id(noun)] = kept
        return kept[1]
