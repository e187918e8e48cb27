"""Programs whose contracts are wrong: operations left out, swapped, doubled, changed."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace

from pipelink_rules.check.protocol.model import UNKNOWN, Composition, Kind
from pipelink_rules.model.contract import Operation, Repeat
from pipelink_rules.model.program import Program

Body = tuple[Operation | Repeat, ...]


def mutated(rng: random.Random, program: Program) -> Program:
    """The program with one or two changes in the body of one role."""
    instances = [
        item for item in program.instances if any(role.body for role in item.variant.contract.roles)
    ]
    chosen = rng.choice(instances)
    contract = chosen.variant.contract
    roles = list(contract.roles)
    place = rng.choice([k for k, role in enumerate(roles) if role.body])
    body = roles[place].body
    for _ in range(rng.choice((1, 1, 2))):
        body = _changed(rng, body)
    roles[place] = replace(roles[place], body=body)
    variant = replace(chosen.variant, contract=replace(contract, roles=tuple(roles)))
    new = replace(chosen, variant=variant)
    return replace(
        program, instances=tuple(new if item is chosen else item for item in program.instances)
    )


def _changed(rng: random.Random, body: Body) -> Body:
    if not body:
        return body
    found = list(body)
    place = rng.randrange(len(found))
    item = found[place]
    if isinstance(item, Repeat) and rng.random() < 0.8:
        found[place] = replace(item, body=_changed(rng, item.body))
        return tuple(found)
    kind = rng.random()
    if kind < 0.3:
        del found[place]
    elif kind < 0.65:
        other = rng.randrange(len(found))
        found[place], found[other] = found[other], found[place]
    elif kind < 0.75:
        found.insert(place, item)
    elif isinstance(item, Operation) and item.verb == "release":
        found[place] = replace(item, lag=rng.choice((0, 1, 2)))
    elif isinstance(item, Operation) and item.verb == "await":
        found[place] = replace(item, count=rng.choice((0, 1, 2)))
    elif isinstance(item, Operation) and item.verb in ("sync", "arrive"):
        found[place] = replace(item, verb="arrive" if item.verb == "sync" else "sync")
    else:
        del found[place]
    return tuple(found)


def with_known_bytes(composition: Composition) -> Composition:
    """Bulk copies, whose sizes are values of the work tile, share what is announced."""
    announced: dict[tuple[str, int], int] = defaultdict(int)
    copies: dict[tuple[str, int], int] = defaultdict(int)
    for process in composition.processes:
        for action in process.period:
            if action.kind == Kind.ARRIVE:
                announced[action.target, action.item] += action.bytes
            elif action.kind == Kind.COPY and action.bytes == UNKNOWN:
                copies[action.barrier, action.item] += 1
    processes = []
    for process in composition.processes:
        period = []
        for action in process.period:
            if action.kind == Kind.COPY and action.bytes == UNKNOWN:
                phase = (action.barrier, action.item)
                action = action._replace(bytes=announced[phase] // copies[phase])
            period.append(action)
        processes.append(process._replace(period=tuple(period)))
    return replace(composition, processes=tuple(processes))
