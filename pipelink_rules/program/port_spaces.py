"""What joins the ports of a space: `connect`, or a keyword of the launcher?"""

from __future__ import annotations

from pipelink_rules.model.contract import Port

JOINED = ("ring", "tensor_memory", "registers", "counter", "scratch")  # what `connect` joins
SPACES = {
    "ring": "a shared-memory ring",
    "tensor_memory": "a ring in tensor memory",
    "registers": "a register fragment",
    "global": "a tensor of the caller",
    "scalar": "a number of the caller",
    "counter": "an array of counters",
    "scratch": "scratch memory",
}
SECTION_OF = {"global": "tensors", "scalar": "scalars"}
FOREVER = {
    ("ring", True): "its role would wait forever for the first item",
    ("ring", False): "its role would wait forever once every stage is full",
    ("tensor_memory", True): "its role would wait forever for the first item",
    ("tensor_memory", False): "its role would wait forever once every stage is full",
    ("counter", True): "its role would wait forever for the first signal",
}


def space_of(port: Port) -> str:
    """The space of a port, scratch memory told apart from tensors."""
    return "scratch" if port.scratch else port.space
