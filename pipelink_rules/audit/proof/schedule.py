"""The proof of a tile scheduler: every work tile, for all sizes, keeps what its contract says.

A scheduler is a function from sizes and the number of a work tile to fields.  Its code is executed
symbolically; the fields are then integers (solver/integers.py), so that a sum or product that wraps
is another number and a quotient by zero is any.  Proved is, of each work tile, that its fields are
the declared values, in their ranges and conditions, and alike where CTAs of a cluster share them;
of two work tiles, that they are numbered in order (`index_within`); all numbers occur if there are
as many values as work tiles.  A launch is taken to have fewer than 2^31 work tiles, because the
glue counts them in 32 bits.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelink_rules.audit.proof.inputs import LARGEST, Inputs
from pipelink_rules.audit.proof.state import WarpState
from pipelink_rules.audit.proof.verdict import RefutedError, TileCase, UnprovedError
from pipelink_rules.contract.parse_params import AXES
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.expression.parse import parse
from pipelink_rules.model.contract import Contract, Role, WorkField
from pipelink_rules.solver import terms
from pipelink_rules.solver.integers import IntegerTerms
from pipelink_rules.solver.queries import Model, Queries
from pipelink_rules.solver.session import SAT, UNSAT, Session
from pipelink_rules.solver.smt_expression import SmtWriter
from pipelink_rules.solver.terms import DATA, Pointer, Term

INDEX = "work tile"  # the variable of its number
_EFFORT = 300_000  # of a question about bit-vectors: a branch that may be impossible
_RLIMIT = 400_000  # of a question about integers, a quarter of it for the first try
MOST_TILES = LARGEST  # of a launch: the glue counts them in 32 bits


class ScheduleInputs(Inputs):
    """What a scheduler is given: sizes, the number of a work tile, the place in the cluster."""

    def __init__(self, contract: Contract, role: Role) -> None:
        super().__init__(contract, role, Queries(_EFFORT))

    def __post_init__(self) -> None:
        self._thread()
        self._symbols()
        work = self.contract.work
        assert work is not None and work.tiles is not None
        self.index = terms.variable(INDEX, 32)
        self._bound(INDEX, 0, MOST_TILES - 1)
        extents = [evaluate(extent, {}) for extent in work.cluster]
        self.axes = [f"cluster {axis}" for axis in AXES[: len(extents)]]  # names of the places
        self.places = [terms.variable(name, 32) for name in self.axes]
        for name, place, extent in zip(self.axes, self.places, extents, strict=True):
            self._bound(name, 0, extent - 1)
            self.queries.assume(terms.less(place, terms.bits(extent, 32)))
        given = [*self.places, *(terms.variable(one.name, 32) for one in self.contract.symbols)]
        self.memory = {("ports", 4 * number): value for number, value in enumerate(given)}
        self.structs = {"ports": 4 * len(given), "work": 4 * len(work.fields)}

    @property
    def arguments(self) -> tuple[Term, ...]:
        """The arguments of its entry."""
        return Pointer("ports", 0), self.index, Pointer("work", 0)

    def values(self, model: Model) -> tuple[tuple[str, int], ...]:
        """Return sizes, number and place of a counterexample."""
        case = self.case(model)
        ((number, place),) = case.tiles
        return (*case.sizes.items(), (INDEX, number), *zip(self.axes, place, strict=True))

    def case(self, model: Model) -> TileCase:
        """Return a counterexample as inputs of the scheduler."""
        sizes = {one.name: model[terms.variable(one.name, 32)] for one in self.contract.symbols}
        place = tuple(model[place] for place in self.places)
        return TileCase(sizes, ((model[self.index], place),))


def prove_fields(inputs: ScheduleInputs, ends: list[WarpState]) -> int:
    """Prove the guarantees of all work tiles; return the number of questions.

    Raise RefutedError with the work tiles that break one, UnprovedError with the first that the
    solver cannot decide.
    """
    schedule = _Schedule(inputs, [_Tile.of(inputs, end) for end in ends])
    schedule.require_consistent()
    schedule.prove_each()
    schedule.prove_alike()
    schedule.prove_numbered()
    if schedule.open:
        raise UnprovedError(f"the proof does not show {schedule.open[0]}")
    return schedule.questions


@dataclass(frozen=True)
class _Tile:
    """The fields that one path through the code computes."""

    path: tuple[Term, ...]
    fields: dict[str, Term]

    @classmethod
    def of(cls, inputs: ScheduleInputs, end: WarpState) -> "_Tile":
        work, fields = inputs.contract.work, {}
        for number, one in enumerate(work.fields if work else ()):
            value = end.memory.get(("work", 4 * number), DATA)
            if value is DATA or isinstance(value, Pointer):
                raise UnprovedError(f"a field `{one.name}` that depends on data")
            fields[one.name] = terms.bits(value, 32)
        return cls(end.path, fields)

    def at(self, pairs: Sequence[tuple[Term, Term]]) -> "_Tile":
        """Return the tile of another number or place."""
        fields = {name: terms.substituted(value, *pairs) for name, value in self.fields.items()}
        return _Tile(tuple(terms.substituted(one, *pairs) for one in self.path), fields)


class _Question:
    """Integers of one or two work tiles, and what holds of them."""

    def __init__(self, inputs: ScheduleInputs) -> None:
        self.inputs, self.writer = inputs, SmtWriter()
        self.integers = IntegerTerms(self.writer, inputs.queries.intervals)
        for one in inputs.contract.symbols:
            self.writer.integer(one.name, one.minimum, one.maximum, one.multiple_of)
        for condition in inputs.contract.requires:
            self.writer.claim(self.writer.true(parse(condition.text)))
        work = inputs.contract.work
        assert work is not None and work.tiles is not None
        self.tiles, exists = self.writer.value(parse(work.tiles.text))
        self.writer.claim(f"(and {exists} (<= {self.tiles} {MOST_TILES}))")

    def number(self, suffix: str = "") -> str:
        """Declare the number of a work tile, and its place in the cluster."""
        bounds = self.inputs.queries.intervals.bounds
        for name in (INDEX, *self.inputs.axes):
            self.writer.integer(name + suffix, *bounds[name], 1)
        self.writer.claim(f"(< |{INDEX}{suffix}| {self.tiles})")
        return f"|{INDEX}{suffix}|"

    def define(self, tile: _Tile, wanted: frozenset[str], suffix: str = "") -> None:
        """Define fields as names, and assume the path."""
        for condition in tile.path:
            self.writer.claim(self.integers.condition(condition))
        for name in sorted(wanted & set(tile.fields)):
            text = self.integers.signed(tile.fields[name])
            self.writer.lines.append(f"(define-fun |{name}{suffix}| () Int {text})")

    def case(self, session: Session, suffixes: Sequence[str]) -> TileCase:
        """Return the work tiles of a solution."""
        found = session.values
        symbols = self.inputs.contract.symbols
        sizes = {
            one.name: found.get(f"{one.name}.n", -(-one.minimum // one.multiple_of))
            * one.multiple_of
            for one in symbols
        }
        return TileCase(
            sizes,
            tuple(
                (
                    found.get(f"{INDEX}{end}.n", 0),
                    tuple(found.get(f"{name}{end}.n", 0) for name in self.inputs.axes),
                )
                for end in suffixes
            ),
        )


class _Schedule:
    """The paths through a scheduler, and questions about its work tiles."""

    def __init__(self, inputs: ScheduleInputs, tiles: list[_Tile]) -> None:
        self.inputs, self.tiles = inputs, tiles
        work = inputs.contract.work
        assert work is not None
        self.work, self.fields = work, work.fields
        self.open: list[str] = []  # guarantees that are not decided
        self.questions = 0

    def require_consistent(self) -> None:
        """Refuse a proof from contradictory clauses, which would prove everything."""
        question = _Question(self.inputs)
        question.number()
        if self._check(question) != SAT:
            raise UnprovedError("clauses of the contract that contradict each other")

    def _check(self, question: _Question) -> str:
        self.questions += 1
        self._session = Session("\n".join(question.writer.lines), _RLIMIT)
        return self._session.check()

    def _decide(self, question: _Question, suffixes: Sequence[str], what: str) -> None:
        verdict = self._check(question)
        if verdict == SAT:
            error = RefutedError("PL0937", f"does not keep {what}", expected=what)
            error.case = question.case(self._session, suffixes)
            raise error
        if verdict != UNSAT:
            self.open.append(what)

    # -- one work tile --------------------------------------------------------------------------
    def prove_each(self) -> None:
        """Prove values, ranges and conditions."""
        for goal, what in (pair for field in self.fields for pair in _goals(field)):
            self._each(goal, what)
        for condition in self.work.where:
            self._each(condition.text, f"`{condition.text}`")

    def _each(self, goal: str, what: str) -> None:
        for tile in self.tiles:
            question = _Question(self.inputs)
            question.number()
            question.define(tile, names(goal))
            question.writer.claim(f"(not {question.writer.true(parse(goal))})")
            self._decide(question, ("",), what)

    def prove_alike(self) -> None:
        """Prove that CTAs of a cluster get equal fields along the axes that a field omits."""
        for field in self.fields:
            for axis, name, place in zip(AXES, self.inputs.axes, self.inputs.places, strict=False):
                if axis in field.along or not self._depends(field.name, name):
                    continue
                moved = [(place, terms.variable(f"{name}'", 32))]
                bounds = self.inputs.queries.intervals.bounds
                bounds[f"{name}'"] = bounds[name]
                for one, other in itertools.product(self.tiles, repeat=2):
                    question = _Question(self.inputs)
                    question.number()
                    question.writer.integer(f"{name}'", *bounds[name], 1)
                    question.define(one, frozenset((field.name,)))
                    question.define(other.at(moved), frozenset((field.name,)), "'")
                    question.writer.claim(f"(distinct |{field.name}| |{field.name}'|)")
                    self._decide(question, ("",), f"one `{field.name}` along {axis}")

    def _depends(self, field: str, name: str) -> bool:
        """Whether a field, or the way to it, contains a variable."""
        return any(
            name in terms.variables(term)
            for tile in self.tiles
            for term in (tile.fields[field], *tile.path)
        )

    # -- two work tiles -------------------------------------------------------------------------
    def _pairs(self, wanted: frozenset[str]) -> Iterator[tuple[_Question, str, str]]:
        """Yield a question about every two work tiles, with the names of their numbers."""
        given = dict(
            zip((INDEX, *self.inputs.axes), (self.inputs.index, *self.inputs.places), strict=True)
        )
        moved = [(one, terms.variable(f"{name}'", 32)) for name, one in given.items()]
        bounds = self.inputs.queries.intervals.bounds
        for name in given:
            bounds[f"{name}'"] = bounds[name]
        for first, second in itertools.product(self.tiles, repeat=2):
            question = _Question(self.inputs)
            numbers = question.number(), question.number("'")
            question.define(first, wanted)
            question.define(second.at(moved), wanted, "'")
            yield question, *numbers

    def prove_numbered(self) -> None:
        """Prove `index_within`: in order, and as many as declared."""
        for field in self.fields:
            group, count = field.index_within, field.index_count
            if not group or count is None:
                continue
            what = f"that `{field.name}` numbers the work tiles of each `{group}`"
            if self.inputs.places:
                self.open.append(what)
                continue
            self._each(f"0 <= {field.name} and {field.name} < ({count})", what)
            for question, one, other in self._pairs(frozenset((field.name, group))):
                question.writer.claim(
                    f"(and (= |{group}| |{group}'|) (< {one} {other})"
                    f" (>= |{field.name}| |{field.name}'|))"
                )
                self._decide(question, ("", "'"), what)
            by_name = {other.name: other for other in self.fields}
            self._as_many([by_name[group]], f"({count})", what)

    def _as_many(self, fields: list[WorkField], factor: str, what: str) -> None:
        """Prove that the ranges of fields have as many combinations as there are work tiles."""
        if any(field.maximum is None for field in fields):
            self.open.append(what)
            return
        values = " * ".join(
            f"((({field.maximum}) - ({field.minimum})) // ({field.multiple_of or 1}) + 1)"
            for field in fields
        )
        question, goal = _Question(self.inputs), f"{values} * {factor} == ({self.work.tiles})"
        question.number()
        question.writer.claim(f"(not {question.writer.true(parse(goal))})")
        if self._check(question) != UNSAT:
            self.open.append(what)


def _goals(field: WorkField) -> Iterator[tuple[str, str]]:
    """Yield the guarantees of one field: (condition, its words)."""
    name = field.name
    if field.value is not None:
        yield f"{name} == ({field.value})", f"the value of `{name}`"
        return
    yield f"{name} >= ({field.minimum})", f"the least value of `{name}`"
    if field.maximum is not None:
        yield f"{name} <= ({field.maximum})", f"the largest value of `{name}`"
    if field.multiple_of is not None:
        yield f"{name} % ({field.multiple_of}) == 0", f"the multiples of `{name}`"
