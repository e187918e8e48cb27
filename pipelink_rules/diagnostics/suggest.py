"""Which known word may the user have meant?"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like `word`, or "" where none is close.  Case does not count."""
    options = sorted(set(known))
    lower = {option.lower(): option for option in reversed(options)}
    found = difflib.get_close_matches(word.lower(), list(lower), n=1, cutoff=0.6)
    return lower[found[0]] if found else ""


def similar_name_help(word: str, known: Iterable[str], what: str = "") -> tuple[str, ...]:
    """The `helps` of an unknown word: the nearest known one, or the list where it is short."""
    options = sorted(set(known))
    if found := nearest(word, options):
        return (f"did you mean `{found}`?",)
    if not options:
        return ()
    shown = options if len(options) <= 16 else [*options[:15], "..."]
    return (f"{what or 'known'}: " + ", ".join(shown),)
