"""Wording that messages share: counted nouns, lists of names and the nearest known name."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like `word`, or "" where none is close.  Case does not count."""
    options = sorted(set(known))
    lower = {option.lower(): option for option in reversed(options)}
    found = difflib.get_close_matches(word.lower(), list(lower), n=1, cutoff=0.6)
    return lower[found[0]] if found else ""


def similar_name_help(word: str, known: Iterable[str], what: str = "") -> tuple[str, ...]:
    """The suggestions for an unknown word: the nearest known one, or the list where it is short."""
    options = sorted(set(known))
    if found := nearest(word, options):
        return (f"a similar name exists: `{found}`",)
    if not options:
        return ()
    shown = options if len(options) <= 16 else [*options[:15], "..."]
    return (f"{what or 'known'}: " + ", ".join(shown),)


def plural(number: int, noun: str, ending: str = "s") -> str:
    """`1 stage`, `2 stages`."""
    return f"{number} {noun}{'' if number == 1 else ending}"


def list_of(names: Iterable[object], last: str = ",") -> str:
    """Quoted names: "`a`, `b`", or with a word before the last one "`a`, `b` and `c`"."""
    quoted = [f"`{name}`" for name in names]
    if last == "," or len(quoted) < 2:
        return ", ".join(quoted)
    return f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
