"""A role's code in step with its body: every operation of the code must be the body's next one."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from pipelink_rules.audit.proof.body import Body, advanced
from pipelink_rules.audit.proof.expressions import term_of
from pipelink_rules.audit.proof.inputs import Inputs
from pipelink_rules.audit.proof.state import WarpState
from pipelink_rules.audit.proof.verdict import DeadPathError, RefutedError, UnprovedError
from pipelink_rules.model.contract import Operation
from pipelink_rules.solver import terms
from pipelink_rules.solver.queries import SAT, UNSAT, Model, Path
from pipelink_rules.solver.terms import Term
from pipelink_rules.toolkit.ptx import Module

Check = Callable[[WarpState, Operation], None]


@dataclass(frozen=True)
class Write:
    """A generic write to shared memory: where, how many bytes, under which path."""

    target: str
    after: tuple[int, int]  # the operation before it: node and number
    offset: Term
    size: int
    path: Path


@dataclass(frozen=True)
class Store:
    """A bulk store from a buffer: what it reads, under which path."""

    target: str
    op: Operation
    operations: int  # performed before it
    offset: Term
    size: int
    path: Path


@dataclass(frozen=True)
class Obligation:
    """A goal that must follow from a path; decided after the run."""

    path: Path
    goal: Term
    error: RefutedError
    abstract: bool


@dataclass
class Prover:
    """The fixed parts of a proof, and what it collects."""

    inputs: Inputs
    module: Module
    body: Body
    obligations: list[Obligation] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    accessed: set[tuple[str, str]] = field(default_factory=set)  # (read or write, port or buffer)
    comparisons: dict[int, tuple[Term, Term]] = field(default_factory=dict)  # condition -> sides
    depth: int = 0  # of guessed relations around the current state
    accesses: int = 0
    performed: int = 0
    _fresh: int = 0

    def __post_init__(self) -> None:
        self.queries = self.inputs.queries
        ports = self.inputs.contract.ports
        self.in_place = {port.name: port.in_place for port in ports if port.in_place}

    def fresh(self, what: str, width: int) -> Term:
        """Return a new variable; `what` "data" marks a condition on data."""
        self._fresh += 1
        return terms.variable(f"{what}!{self._fresh}", width)

    def reads_of(self, ports: set[str]) -> bool:
        """Return whether the code so far has read one of the ports."""
        return any(kind == "read" and name in ports for kind, name in self.accessed)

    # -- goals ----------------------------------------------------------------------------------
    def refute(self, state: WarpState, error: RefutedError, model: Model | None = None) -> None:
        """Raise the error with values under which it occurs; DeadPathError where there are none."""
        if model is None:
            verdict, model = self.queries.check(state.path, 1)
            if verdict == UNSAT:
                raise DeadPathError
        error.model, error.abstract = model, self.depth > 0
        raise error

    def need(self, state: WarpState, goal: Term, error: RefutedError) -> None:
        """Prove the goal on the state's path, or raise the error with a counterexample."""
        model = self.queries.counterexample(state.path, goal, str(error))
        if model is not None:
            self.refute(state, error, model)

    def oblige(self, state: WarpState, goal: Term, error: RefutedError) -> None:
        """Prove the goal after the run."""
        self.obligations.append(Obligation(state.path, goal, error, self.depth > 0))

    def oblige_on(self, path: Path, goal: Term, error: RefutedError) -> None:
        """Prove a goal on a path, after the run."""
        self.obligations.append(Obligation(path, goal, error, self.depth > 0))

    def oblige_any_stage(
        self, state: WarpState, ring: str, goal: Term, error: RefutedError
    ) -> None:
        """Prove a goal for every stage of a ring, once; where that fails, for the current one."""
        held = state.body.rings[ring].current
        assert held is not None
        free = terms.variable(f"any stage of {ring}", 32)
        general = terms.simplified(terms.substituted(goal, (terms.bits(held[0], 32), free)))
        if isinstance(general, int):
            if general:
                return
        else:
            path = (terms.less(free, self.inputs.rings[ring].stages),)
            if self.queries.check(path, terms.negated(general))[0] == UNSAT:
                return
        self.oblige(state, goal, error)

    def oblige_inside(
        self, state: WarpState, offset: Term, size: Term, top: Term, error: RefutedError
    ) -> None:
        """Prove that [offset, offset + size) lies in [0, top), after the run."""
        if (
            isinstance(top, int)
            and isinstance(size, int)
            and self.queries.intervals.of(offset)[1] + size <= top
        ):
            return
        offset, size = terms.wide(offset), terms.bits(size, 64)
        end = offset + size
        fits = terms.at_most(end, terms.bits(top, 64))
        self.oblige(state, terms.both(terms.at_most(offset, end), fits), error)

    def decide(self, state: WarpState, condition: Term) -> Iterable[tuple[bool, WarpState]]:
        """Return (truth, state) for each way in which the condition can go."""
        condition = terms.simplified(condition)
        if isinstance(condition, int):
            return [(bool(condition), state)]
        no = self.queries.possible(state.path, terms.negated(condition))
        yes = not no or self.queries.possible(state.path, condition)
        if yes and no:
            other = state.copy().on(terms.negated(condition))
            return [(True, state.on(condition)), (False, other)]
        return [(yes, state)]

    # -- divergence -----------------------------------------------------------------------------
    def converged(self, state: WarpState, what: str, code: str = "PL0934") -> None:
        """Refute what only some lanes of a warp do."""
        for number, condition in enumerate(state.path):
            names = terms.variables(condition)
            if any(name.startswith("data!") for name in names):
                if self.queries.possible(state.path):
                    raise UnprovedError(f"`{what}` under a condition on data")
                raise DeadPathError
            if "lane" not in names:
                continue
            other = terms.substituted(condition, (self.inputs.lane, terms.variable("lane'", 5)))
            rest = state.path[:number] + state.path[number + 1 :]
            if not self.queries.possible(rest, terms.both(condition, terms.negated(other))):
                continue
            self.refute(
                state,
                RefutedError(
                    code,
                    f"diverges within a warp: some of its lanes perform `{what}`",
                    expected=f"`{what}` by all lanes of a warp, or by none",
                    found="a condition that varies by lane",
                ),
            )

    # -- the body's next operation --------------------------------------------------------------
    def event(self, state: WarpState, verb: str, target: str, check: Check) -> list[WarpState]:
        """Perform an operation of the code: the body's next one must be the same."""
        name = f"{verb} {target}".strip()
        self.converged(state, name)
        self.performed += 1
        found = []
        for one, number in self.next_operations(state):
            op = self.body.nodes[number].op if number is not None else None
            if op is None or number is None:
                self.refute(one, _beyond(name))
                continue
            if (op.verb, op.target) != (verb, target):
                self.refute(one, _other_operation(name, op))
            check(one, op)
            one.body.last = number
            one.operations += 1
            self._step(one)
            found.append(one)
        return found

    def next_operations(self, state: WarpState) -> list[tuple[WarpState, int | None]]:
        """Return the states at the body's next operation; None: at its end."""
        todo: list[WarpState] = [state]
        found: list[tuple[WarpState, int | None]] = []
        while todo:
            one = todo.pop()
            number = one.body.at
            node = self.body.nodes[number]
            if node.count is not None:
                todo += self._loop_head(one, number)
            elif node.op is None:
                found.append((one, None))
            elif node.is_access:
                self._step(one)
                todo.append(one)
            elif node.op.verb == "release":
                held = one.body.rings[node.op.target].held
                due = terms.bits(held, 32) > node.op.lag if not isinstance(held, int) else None
                condition = int(held > node.op.lag) if due is None else due
                for yes, other in self.decide(one, condition):
                    if yes:
                        found.append((other, number))
                    else:
                        self._step(other)
                        todo.append(other)
            else:
                found.append((one, number))
        return found

    def turns_left(self, state: WarpState, loop: int) -> Term:
        """Whether a loop of the body has another turn."""
        count = self.body.nodes[loop].count
        assert count is not None
        turns = terms.sign_extended(state.body.turns[loop], 32, 64)
        return terms.compare("lt", turns, term_of(count, self.inputs.env), 64, True)

    def _loop_head(self, state: WarpState, number: int) -> list[WarpState]:
        node, found = self.body.nodes[number], []
        for yes, one in self.decide(state, self.turns_left(state, number)):
            if yes:
                self._go(one, node.first, back=False)
            else:
                self._go(one, node.next, back=self.body.goes_back(number, node.next))
            found.append(one)
        return found

    def _step(self, state: WarpState) -> None:
        number = state.body.at
        target = self.body.nodes[number].next
        self._go(state, target, back=self.body.goes_back(number, target))

    def _go(self, state: WarpState, target: int, *, back: bool) -> None:
        if self.body.nodes[target].count is not None:
            turns = state.body.turns
            turns[target] = terms.simplified(terms.add(turns[target], 1, 32)) if back else 0
        state.body.at = target

    # -- rings ----------------------------------------------------------------------------------
    def same_item(self, state: WarpState, ring: str, found: tuple[Term, Term], verb: str) -> None:
        """Refute an operation on another item than the body's."""
        held = state.body.rings[ring]
        wanted = held.released if verb == "release" else held.current or found
        goal = terms.both(
            *(terms.bits(a, 32) == terms.bits(b, 32) for a, b in zip(found, wanted, strict=True))
        )
        error = RefutedError(
            "PL0916",
            f"performs `{verb}` on the wrong item of `{ring}`",
            target=ring,
            expected=f"`{verb} {ring}` on the item that `body` has reached",
            found="another stage or phase",
        )
        self.need(state, goal, error)

    def take(self, state: WarpState, ring: str) -> None:
        """Make the next item of a ring the current one."""
        held = state.body.rings[ring]
        following = advanced(held.next, self.inputs.rings[ring].stages)
        count = terms.simplified(terms.add(held.held, 1, 32))
        state.body.rings[ring] = replace(held, current=held.next, next=following, held=count)

    # -- after the run --------------------------------------------------------------------------
    def discharge(self, *, definite: bool = False) -> None:
        """Prove the obligations; raise the first that does not hold.

        definite: only those that were reached without a guessed relation.
        """
        for one in self.obligations:
            if definite and one.abstract:
                continue
            goals = terms.conjuncts(terms.simplified(one.goal))
            verdicts = (
                self.queries.counterexample(one.path, goal, str(one.error)) for goal in goals
            )
            verdict = next((found for found in verdicts if found is not None), None)
            if verdict is not None:
                error = one.error
                if error.unproved:
                    raise UnprovedError(error.unproved)
                error.model, error.abstract = verdict, one.abstract
                if error.elsewhere is not None and verdict[error.elsewhere]:
                    error.code = "PL0916"  # inside of the ring, but of another item
                raise error

    def require_consistent(self) -> None:
        """Refuse a proof from contradictory assumptions, which would prove everything."""
        if self.queries.check((), 1)[0] != SAT:
            raise UnprovedError("clauses of the contract that contradict each other")


def _beyond(name: str) -> RefutedError:
    return RefutedError(
        "PL0934",
        f"performs `{name}` beyond its contract",
        expected="nothing more in this work tile",
        found=name,
    )


def _other_operation(name: str, op: Operation) -> RefutedError:
    wanted = shown(op)
    code = "PL0934" if name.split()[0] != op.verb else "PL0915"
    return RefutedError(
        code,
        f"performs `{name}` where its contract declares `{wanted}`",
        op=op,
        target=op.target,
        expected=wanted,
        found=name,
    )


def shown(op: Operation) -> str:
    """Return an operation as its contract writes it."""
    if op.verb == "copy":
        return f"copy {op.source} -> {op.target}.{op.member}"
    if op.verb == "commit" and op.source:
        return f"commit mma -> {op.target}"
    if op.verb in ("store", "mma") and op.source:
        return f"{op.verb} {op.target} -> {op.source}"
    if op.verb == "await":
        return f"await {op.target} {op.count}" + (" full" if op.full else "")
    return f"{op.verb} {op.target}".strip()
