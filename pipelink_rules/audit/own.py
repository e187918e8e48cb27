"""Which instructions are a component's own, and what does each of them do?

Behind a `raw` port a component issues what otherwise the runtime does: arrivals and waits on the
mbarriers of its rings, bulk copies, bulk stores, named barriers.  Each becomes the event of the
operation that it is, and is compared with the contract as a call of the runtime is.
"""

from __future__ import annotations

from pipelink_rules.audit.own_barriers import mbarrier, named
from pipelink_rules.audit.own_copies import copy_or_store
from pipelink_rules.audit.own_memory import atomic, elect, mapa
from pipelink_rules.audit.pending_operations import OwnStep
from pipelink_rules.toolkit.ptx import Statement

_STEPS = {
    "mbarrier": mbarrier,
    "cp": copy_or_store,
    "bar": named,
    "barrier": named,
    "mapa": mapa,
    "elect": elect,
    "atom": atomic,
    "red": atomic,
    "multimem": atomic,
}


def own_step(statement: Statement) -> OwnStep | None:
    """The step of such an instruction; None for any other, and for those nobody can follow."""
    if statement.opcode.startswith("red.async"):
        return None
    read = _STEPS.get(statement.base)
    return read(statement) if read else None
