"""Which parameters does the entry take, in which order, and which one serves a port?

The order is written here once; the glue prints it and the manifest carries it to the launcher.
"""

from __future__ import annotations

from pipelink_rules.glue.workspace import workspace_parameters
from pipelink_rules.model.contract import Port
from pipelink_rules.model.linked_kernel import KernelParameter
from pipelink_rules.model.program import Program


def kernel_parameters(program: Program) -> tuple[KernelParameter, ...]:
    """The parameters of the entry, in order.

    For each tensor keyword in declaration order: one tensor map per distinct (box, swizzle) of
    its ports with a `tile` (a slice of it where CTAs of a cluster share the copy), in port order,
    then one pointer where any port has no `tile`.  Then the scalars in declaration order, then
    the workspace, then the symbols (i32, sorted by name).
    """
    found: list[KernelParameter] = []
    for keyword, places in program.tensors:
        found += _tensor_parameters(program, keyword, places)
    for keyword, places in program.scalars:
        kind = _port(program, places[0]).type
        names = tuple(".".join(place) for place in places)
        found.append(KernelParameter(kind, keyword, kind, port=names[0], ports=names))
    found += workspace_parameters(program)
    found += [KernelParameter("i32", symbol, "i32") for symbol in sorted(program.symbols)]
    return tuple(found)


def parameter_index(program: Program) -> dict[tuple[str, str], int]:
    """(instance, port) -> position of the parameter that serves it."""
    return {
        (instance, port): position
        for position, parameter in enumerate(kernel_parameters(program))
        for instance, _, port in (name.partition(".") for name in parameter.ports)
    }


def _port(program: Program, place: tuple[str, str]) -> Port:
    return program.instance(place[0]).variant.contract.port(place[1])


def _tensor_parameters(
    program: Program, keyword: str, places: tuple[tuple[str, str], ...]
) -> list[KernelParameter]:
    slices = {
        (channel.producer[0], shared.tensor): shared.rows
        for channel in program.channels
        for shared in channel.multicast
    }
    maps: dict[tuple[tuple[int, ...], int], list[str]] = {}
    plain: list[str] = []
    for place in places:
        tile = _port(program, place).tile
        if tile is None:
            plain.append(".".join(place))
        else:
            box = tuple(extent.literal or 0 for extent in tile.box)
            box = (slices.get(place, box[0]), *box[1:])
            maps.setdefault((box, tile.swizzle), []).append(".".join(place))
    dtype = _port(program, places[0]).members[0].dtype
    found = [
        KernelParameter("tensor_map", keyword, dtype, box, swizzle, names[0], tuple(names))
        for (box, swizzle), names in maps.items()
    ]
    if plain:
        found.append(KernelParameter("pointer", keyword, dtype, port=plain[0], ports=tuple(plain)))
    return found
