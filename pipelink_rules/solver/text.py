"""SMT-LIB text: bounded integers and assertions over them, for a session to decide."""


class Text:
    """Collects declarations and assertions in the order in which they are added."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def __str__(self) -> str:
        return "".join(self._lines)

    def integer(self, name: str, low: int, high: int) -> str:
        """Declare an integer variable within bounds; its name."""
        self._lines.append(f"(declare-const {name} Int)(assert (<= {low} {name} {high}))")
        return name

    def optional(self, literal: str, name: str, low: int, high: int) -> str:
        """Declare an integer variable that is within bounds if a literal holds; its name."""
        self._lines.append(
            f"(declare-const {name} Int)(declare-const {literal} Bool)"
            f"(assert (=> {literal} (<= {low} {name} {high})))\n"
        )
        return name

    def claim(self, formula: str) -> None:
        """Assert a formula."""
        self._lines.append(f"(assert {formula})\n")

    def apart(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        """Assert that two intervals (start, end) do not overlap."""
        self.claim(f"(or (<= {one[1]} {other[0]}) (<= {other[1]} {one[0]}))")


def product(factor: int, name: str) -> str:
    """factor * name."""
    return name if factor == 1 else f"(* {factor} {name})"


def total(terms: list[str]) -> str:
    """Return the sum of terms; 0 without any."""
    return f"(+ {' '.join(terms)})" if len(terms) > 1 else (terms or ["0"])[0]
