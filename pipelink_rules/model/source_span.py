"""Source spans: every value of a contract or declaration keeps its location."""

from dataclasses import dataclass

JsonPath = tuple[str | int, ...]  # keys and indices of a JSON file, from the root


@dataclass(frozen=True, order=True)
class Span:
    """A half-open range of characters in one line of a text file."""

    file: str  # path as the user would type it: relative to the repository where possible
    line: int = 0  # from 1; 0 = the whole file
    column: int = 0  # from 1
    length: int = 1  # characters

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True)
class Expr:
    """An expression of the contract language, kept as text; `expression.expression` evaluates it.

    After binding, parameters are substituted, so `literal` is set for all that is known at
    compile time; other names are symbols (launch time) or work fields.
    """

    text: str
    span: Span | None = None

    @property
    def literal(self) -> int | None:
        """The integer value, None where the expression has names."""
        body = self.text.strip()
        return int(body) if body.lstrip("-").isdigit() else None

    def __str__(self) -> str:
        return self.text
