"""The glue of tensor memory: one allocation before all roles, deallocated after them.

The address of the allocation is known only at run time and stored in the fixed word of the
mbarrier table.  Stages are columns relative to it, as placed.
"""

from pipelink_rules.glue.cuda_writer import CudaWriter, constant
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Channel, Program

FIXED = "fixed"  # the part of the mbarrier table that belongs to no channel
WARP = 0  # that allocates and returns


def stages(out: CudaWriter, channel: Channel, placement: Placement) -> None:
    """Emit the constants of a ring in tensor memory: first column, and columns of a stage."""
    stem, count = constant(channel.name), placement.stage_count(channel.name)
    first = placement.first_column(channel.name)
    comment = f"tensor memory: {count} x {channel.columns} columns"
    out.line(f"constexpr uint32_t {stem} = {first};  // {comment}")
    out.line(f"constexpr uint32_t {stem}Bytes = {channel.columns};  // columns")


def address_slot(out: CudaWriter, placement: Placement) -> None:
    """Emit the location of the address of the allocation."""
    if placement.tensor_columns:
        at = dict(placement.barriers)[FIXED]
        out.line(f"constexpr uint32_t kTensorSlot = {at};  // address of the tensor memory")


def allocate(out: CudaWriter, placement: Placement) -> None:
    """Emit the allocation, before the barrier of the initialization."""
    if placement.tensor_columns:
        out.comment("One warp allocates tensor memory; its address is read behind the barrier.")
        with out.block(f"if (warp == {WARP})"):
            columns = placement.tensor_columns
            out.line(f"pipelink::allocate_tensor_memory<{columns}>(shared + kTensorSlot);")


def load_base(out: CudaWriter, placement: Placement) -> None:
    """Emit the load of the address, after that barrier."""
    if placement.tensor_columns:
        out.line("const uint32_t tensor = pipelink::tensor_base(shared + kTensorSlot);")


def end(out: CudaWriter, placement: Placement) -> None:
    """Emit the deallocation, after the last work tile of all roles."""
    if placement.tensor_columns:
        out.comment("Everybody is done with tensor memory: the warp that allocated it returns it.")
        out.line(f"pipelink::free_tensor_memory<{placement.tensor_columns}>(tensor, warp);")


def data(program: Program, channel: Channel) -> str:
    """Return the address of stage 0 of a ring in either memory."""
    memory = "tensor" if channel.columns else "shared"
    return f"{memory} + {constant(channel.name)}"
