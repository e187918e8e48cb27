"""The glue of clusters: launch attribute, position of a CTA, and access to other CTAs.

The hardware cluster is a line of CTAs, numbered along x first: `blockIdx.x` stays the number of a
CTA in the grid, and the axes belong to the tile scheduler.
"""

import math

from pipelink_rules.glue.cuda_writer import CudaWriter
from pipelink_rules.model.program import Channel, Program


def shape(program: Program) -> str:
    """Return the cluster attribute of the entry; "" if a cluster is one CTA."""
    size = math.prod(program.cluster)
    return f"__cluster_dims__({size}, 1, 1) " if size > 1 else ""


def reaches(program: Program) -> bool:
    """Return whether a CTA accesses the shared memory of other CTAs."""
    return any(channel.multicast for channel in program.channels)


def emit_prologue(out: CudaWriter, program: Program) -> None:
    """Emit the cluster barrier that makes the initialized mbarriers visible to all CTAs."""
    if reaches(program):
        out.comment("Others copy to this CTA and arrive at its barriers: they have to be set up.")
        out.line("pipelink::cluster_sync();")
    else:
        out.line("__syncthreads();")


def emit_epilogue(out: CudaWriter, program: Program) -> None:
    """Emit the cluster barrier after the last work tile of all roles."""
    if reaches(program):
        out.comment("No CTA exits while others may still access its shared memory.")
        out.line("pipelink::cluster_sync();")


def numbers(program: Program) -> tuple[str, str]:
    """Return the number of the first work tile and the stride to the next one."""
    size = math.prod(program.cluster)
    if size == 1:
        return "blockIdx.x", "gridDim.x"
    return f"blockIdx.x / {size}", f"gridDim.x / {size}"


def place(program: Program) -> list[str]:
    """Return the arguments of a tile scheduler that supports clusters."""
    work = program.instance(program.scheduler[0]).variant.contract.work
    if work is None or not work.cluster:
        return []
    along = program.cluster[0]
    rank = "pipelink::cluster_rank()"
    return [f".pl_cluster = {{{rank} % {along}, {rank} / {along}}}"]


def ring(out: CudaWriter, program: Program, channel: Channel, variable: str) -> None:
    """Emit `<variable>_ring` from `<variable>_own` with the multicast members."""
    ports = map(program.port, (channel.producer, *channel.consumers))
    ordered = any(port.proxy != "async" for port in ports)
    (size, stride), *others = groups(channel)
    size2, stride2 = others[0] if others else (1, 1)
    offsets = dict(channel.member_offsets)
    words = [
        f"{{{offsets[m.member]}, {m.rows}, {m.bytes // m.rows}, {m.size}, {m.stride}}}"
        for m in channel.multicast
    ]
    names = ", ".join(f"{m.member} along {' and '.join(m.axes)}" for m in channel.multicast)
    out.comment(f"loaded by CTAs of the cluster for each other: {names}")
    out.line(f"constexpr pipelink::SharedMember {variable}_shared[] = {{{', '.join(words)}}};")
    reach = f"pipelink::Reach{{{size}, {stride}, {size2}, {stride2}, {str(ordered).lower()}}}"
    call = f"const pipelink::Ring {variable}_ring = pipelink::cluster_ring("
    out.listed(call, (f"{variable}_own", reach, f"{variable}_shared"), ");")


def groups(channel: Channel) -> tuple[tuple[int, int], ...]:
    """Return (size, stride) of the multicast groups, without those contained in another one."""
    found = {(m.size, m.stride): set(m.group(0)) for m in channel.multicast}
    inside = {key for key, one in found.items() if any(one < other for other in found.values())}
    return tuple(sorted(set(found) - inside))
