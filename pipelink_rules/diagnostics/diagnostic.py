"""A finding, its report, and the exception that carries findings to the edge of the program."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, TypedDict, Unpack

from pipelink_rules.model.source_span import Span

LONGEST_LINE = 600  # characters of a message
LONGEST_TEXT = 8000  # of a clause, which may have several lines


@dataclass(frozen=True)
class Label:
    """A place and what is said about it; the first label of a diagnostic is the primary one."""

    span: Span
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))


# Where a diagnostic points: a span, a span with its text, or nothing where it is not known.
Location = Span | Label | tuple[Span | None, str] | None


@dataclass(frozen=True)
class Diagnostic:
    """One finding.  `message` is one line without a full stop; numbers are already substituted."""

    code: str  # "PL0202"
    message: str
    labels: tuple[Label, ...] = ()
    expected: str = ""  # what was expected
    found: str = ""  # what was found
    at_run_time: str = ""  # what would happen if it were linked anyway
    notes: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()  # the cycle: who waits for whom, and why
    counterexample: tuple[str, ...] = ()  # a shortest run into it, step by step
    suggestions: tuple[str, ...] = ()  # how to fix it, the smallest change first
    subject: str = ""  # the connection, role or resource: one finding per code and subject
    severity: str = "error"  # or "warning"
    allowed: str = ""  # why it is a warning here: the reason a declaration gives in allow=

    def __post_init__(self) -> None:
        """Texts quote what users wrote: nothing of it may steer a terminal or break a line."""
        object.__setattr__(self, "message", one_line(self.message))
        for name in ("expected", "found", "at_run_time", "subject"):
            object.__setattr__(self, name, lines(getattr(self, name)))
        for name in ("notes", "chain", "counterexample", "suggestions"):
            object.__setattr__(self, name, tuple(map(lines, getattr(self, name))))


class Details(TypedDict, total=False):
    """The optional fields of a Diagnostic without its subject, for functions that set that."""

    expected: str
    found: str
    at_run_time: str
    notes: tuple[str, ...]
    chain: tuple[str, ...]
    counterexample: tuple[str, ...]
    suggestions: tuple[str, ...]
    severity: str
    allowed: str


class Clauses(Details, total=False):
    """The same with the subject."""

    subject: str


@dataclass(frozen=True)
class CheckResult:
    """What the check of a program found; `<name>.check.json` is its file."""

    FORMATS: ClassVar[tuple[str, ...]] = ("check",)

    diagnostics: tuple[Diagnostic, ...]


class PipelinkError(Exception):
    """Findings that stop a stage.  Never shown as a traceback; the edge renders `diagnostics`."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic):
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = found
        super().__init__("; ".join(f"{item.code}: {item.message}" for item in found))


def error(
    code: str, message: str, *locations: Location, **clauses: Unpack[Clauses]
) -> PipelinkError:
    """The exception for a single finding: `raise error("PL0001", "...", span, found="...")`."""
    return PipelinkError(Diagnostic(code, message, tuple(known_labels(locations)), **clauses))


def known_labels(locations: Iterable[Location]) -> Iterator[Label]:
    """A label for each location that is known."""
    for location in locations:
        if isinstance(location, Label):
            yield location
        else:
            span, text = location if isinstance(location, tuple) else (location, "")
            if span is not None:
                yield Label(span, text)


def labels(*locations: Location) -> tuple[Label, ...]:
    """Labels of the locations that are known; one that is given twice keeps its first text."""
    found: dict[Span, Label] = {}
    for label in known_labels(locations):
        found.setdefault(label.span, label)
    return tuple(found.values())


def report(code: str, message: str, *locations: Location, **clauses: Unpack[Clauses]) -> Diagnostic:
    """A diagnostic with the labels of its locations."""
    return Diagnostic(code, message, labels(*locations), **clauses)


class DiagnosticSink:
    """The diagnostics of one pass, collected so that all of them are reported together."""

    def __init__(self) -> None:
        self.items: list[Diagnostic] = []

    def add(
        self, code: str, message: str, *locations: Location, **clauses: Unpack[Clauses]
    ) -> None:
        """Adds one diagnostic; a place that is not known is left out."""
        self.items.append(Diagnostic(code, message, tuple(known_labels(locations)), **clauses))

    def extend(self, items: Iterable[Diagnostic]) -> None:
        """Adds the diagnostics of another pass."""
        self.items += items

    def raise_if_any(self) -> None:
        """Raises PipelinkError with all diagnostics, if there are any."""
        if self.items:
            raise PipelinkError(self.items)


def one_line(text: str) -> str:
    """The text in one line: what is not printable is written as an escape."""
    text = _shortened(text)
    return text if text.isprintable() else _shortened("".join(map(_escaped, text)))


def lines(text: str) -> str:
    """The text with its line breaks and tabs, and every other character printable."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]} ..."
    if text.isprintable():
        return text
    return "".join(char if char in "\n\t" else _escaped(char) for char in text)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_LINE:
        return text
    return f"{text[: LONGEST_LINE // 2]} ... {text[-LONGEST_LINE // 4 :]}"


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return char.encode("unicode_escape").decode("ascii")
