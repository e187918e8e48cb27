"""The parameters of the entry, their order, and the parameter of each port.

The order is defined here only; the glue declares it and the manifest passes it to the launcher.
Scratch memory and counters are global memory that the launcher allocates, with separate parameters.
"""

from pipelink_rules.model.contract import Port
from pipelink_rules.model.linked_kernel import KernelParameter, Workspace
from pipelink_rules.model.program import COUNTER, SCRATCH, Program
from pipelink_rules.model.source_span import Expr

End = tuple[str, str]  # instance, port
KINDS = {SCRATCH: "scratch", COUNTER: "counters"}  # transfer -> kind


def kernel_parameters(program: Program) -> tuple[KernelParameter, ...]:
    """Return the parameters of the entry, in order.

    For each tensor keyword in declaration order: one tensor map per distinct (box, swizzle) of
    its ports with a `tile` (a slice of it where CTAs of a cluster share the copy), in port order,
    then one pointer where any port has no `tile`.  Then the scalars in declaration order, then
    the workspace, then the symbols (i32, sorted by name).
    """
    found: list[KernelParameter] = []
    for keyword, places in program.tensors:
        found += _tensor_parameters(program, keyword, places)
    for keyword, places in program.scalars:
        kind = program.port(places[0]).type
        names = tuple(".".join(place) for place in places)
        found.append(KernelParameter(kind, keyword, kind, port=names[0], ports=names))
    for item, (end, (_, readers)) in zip(workspaces(program), _ends(program).items(), strict=True):
        names = tuple(".".join(one) for one in (end, *readers))
        found.append(KernelParameter(item.kind, item.name, item.dtype, port=names[0], ports=names))
    found += [KernelParameter("i32", symbol, "i32") for symbol in sorted(program.symbols)]
    return tuple(found)


def parameter_index(program: Program) -> dict[End, int]:
    """Return (instance, port) -> position of the parameter that serves it."""
    return {
        (instance, port): position
        for position, parameter in enumerate(kernel_parameters(program))
        for instance, _, port in (name.partition(".") for name in parameter.ports)
    }


def _tensor_parameters(
    program: Program, keyword: str, places: tuple[End, ...]
) -> list[KernelParameter]:
    slices = {
        (channel.producer[0], shared.tensor): shared.rows
        for channel in program.channels
        for shared in channel.multicast
    }
    maps: dict[tuple[tuple[int, ...], int], list[str]] = {}
    plain: list[str] = []
    for place in places:
        tile = program.port(place).tile
        if tile is None:
            plain.append(".".join(place))
        else:
            box = tuple(extent.literal or 0 for extent in tile.box)
            box = (slices.get(place, box[0]), *box[1:])
            maps.setdefault((box, tile.swizzle), []).append(".".join(place))
    dtype = program.port(places[0]).members[0].dtype
    found = [
        KernelParameter("tensor_map", keyword, dtype, box, swizzle, names[0], tuple(names))
        for (box, swizzle), names in maps.items()
    ]
    if plain:
        found.append(KernelParameter("pointer", keyword, dtype, port=plain[0], ports=tuple(plain)))
    return found


def workspaces(program: Program) -> tuple[Workspace, ...]:
    """Return one workspace per port that writes scratch or signals, in connection order."""
    found = []
    for end, (transfer, _) in _ends(program).items():
        port, name, kind = program.port(end), ".".join(end), KINDS[transfer]
        if transfer == COUNTER:
            found.append(Workspace(name, kind, "u32", (port.count or Expr("1")).text, True))
        else:
            member = port.members[0]
            count = " * ".join(f"({extent.text})" for extent in member.shape)
            found.append(Workspace(name, kind, member.dtype, count, port.init == "zero"))
    return tuple(found)


def counters_behind(program: Program, end: End) -> Port:
    """Return the port that signals the counters of a port."""
    for giver, (kind, takers) in _ends(program).items():
        if kind == COUNTER and end in (giver, *takers):
            return program.port(giver)
    raise KeyError(end)


def _ends(program: Program) -> dict[End, tuple[str, list[End]]]:
    found: dict[End, tuple[str, list[End]]] = {}
    for item in program.connections:
        if item.transfer in KINDS:
            found.setdefault(item.producer, (item.transfer, []))[1].append(item.consumer)
    return found
