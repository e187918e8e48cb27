"""Source of the register probe: variant -> CUDA text, one kernel per role.

Relocations are constants, as in a linked kernel; everything that varies at run time there (work
fields, tensors, scalars, symbols, fragments of other components) is read from kernel parameters
or memory, so that the compiler folds as much of the role as in a linked kernel.
"""

from pipelink_rules.contract.header import fragment_floats, role_types
from pipelink_rules.contract.item_layout import item_layout, tensor_columns
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import DTYPES, RINGS, Contract, Port, Role
from pipelink_rules.model.variant import Variant

_SCALARS = {"f32": "float", "i32": "int32_t", "u32": "uint32_t"}
_STAGES = 4  # of a ring in the probe, if its bounds allow


def kernel_name(role: str) -> str:
    """Return the name of a role's probe kernel."""
    return f"pl_probe_{role}"


def probe_source(variant: Variant) -> str:
    """Return one translation unit with a kernel for each role."""
    contract = variant.contract
    lines = [
        f"// Probe of {variant.name}: how many registers each role needs.",
        "#include <pipelink/glue.cuh>",
        f'#include "{contract.component}.contract.cuh"',
        "",
        "struct PlProbe {",
        "  const volatile float* fragments;",
        "  volatile float* results;",
        "  const volatile int32_t* fields;",
        "  uint32_t items;",
        "};",
    ]
    for role in contract.roles:
        lines += ["", *_kernel(variant, role)]
    return "\n".join(lines) + "\n"


def _kernel(variant: Variant, role: Role) -> list[str]:
    contract = variant.contract
    # A tile scheduler runs in other roles; here it has one warp.
    threads = 32 if role.scheduler else 32 * max(1, evaluate(role.warps, {}))
    parameters, values = _ports(contract, role)
    types = role_types(variant, role)
    lines = [
        f'extern "C" __global__ void __launch_bounds__({threads})',
        f"{kernel_name(role.name)}({', '.join(['const PlProbe probe', *parameters])}) {{",
        "  extern __shared__ __align__(1024) uint8_t pl_shared[];",
        "  const uint32_t shared = pipelink::shared_base(pl_shared);",
    ]
    ports = [port for port in contract.ports if port.role == role.name]
    fragments = [port for port in ports if port.space == "registers" and not port.in_place]
    lines += [f"  float {port.name}[{fragment_floats(port)}];" for port in fragments]
    if not role.scheduler:
        lines += [f"  const {types[0]} pl_at{{{', '.join(_relocations(contract, role))}}};"]
    kind = types[0] if role.scheduler else types[1]
    lines += [
        f"  {kind} pl_port{{{', '.join(values)}}};",
        "  for (uint32_t item = blockIdx.x; item < probe.items; item += gridDim.x) {",
    ]
    lines += [f"    {line}" for line in _work_tile(variant, role, fragments)]
    return [*lines, "  }", "}"]


def _work_tile(variant: Variant, role: Role, fragments: list[Port]) -> list[str]:
    fields = variant.contract.work.fields if variant.contract.work else ()
    symbol = variant.symbol(role.name)
    kind = role_types(variant, role)[-1]
    if role.scheduler:
        stores = [
            f"probe.results[item * {len(fields)} + {n}] = __int_as_float(pl_work.{field.name});"
            for n, field in enumerate(fields)
        ]
        return [f"{kind} pl_work;", f"{symbol}(pl_port, item, pl_work);", *stores]
    values = [
        f".{field.name} = probe.fields[item * {len(fields)} + {n}]"
        for n, field in enumerate(fields)
    ]
    lines = []
    for port in fragments:
        if port.direction == "in":
            lines += _each(port, f"{port.name}[i] = probe.fragments[i * 1024 + threadIdx.x];")
    lines += [
        f"const {kind} pl_work{{{', '.join(values)}}};",
        f"{symbol}(pl_at, pl_port, pl_work, threadIdx.x);",
    ]
    changed = {port.in_place for port in variant.contract.ports if port.in_place}
    for port in fragments:
        if port.direction == "out" or port.name in changed:
            lines += _each(port, f"probe.results[i * 1024 + threadIdx.x] = {port.name}[i];")
    return lines


def _each(port: Port, body: str) -> list[str]:
    count = fragment_floats(port)
    return ["#pragma unroll", f"for (int i = 0; i < {count}; ++i) {body}"]


def _ports(contract: Contract, role: Role) -> tuple[list[str], list[str]]:
    """Return the kernel's parameters, and the initializers of the entry's ports from them."""
    parameters, values = [], []
    for port in contract.ports:
        if port.role != role.name or (port.space == "registers" and port.in_place):
            continue
        value = port.name
        if port.space in RINGS:
            value = "{0, 0}"
        elif port.space == "scalar":
            parameters.append(f"{_SCALARS[port.type]} {port.name}")
        elif port.space == "global" and port.tile is not None:
            parameters.append(f"const __grid_constant__ pipelink::TensorMap {port.name}")
            value = f"&{port.name}"
        elif port.space == "global":
            parameters.append(f"{DTYPES[port.members[0].dtype][1]}* {port.name}")
        elif port.space == "counter":
            parameters.append(f"uint32_t* {port.name}")
            scope = f"pipelink::k{port.scope.capitalize()}Scope"
            value = f"pipelink::counters_of({port.name}, {evaluate(port.arrivals, {})}, {scope}, 1)"
        values.append(f".{port.name} = {value}")
    symbols = [symbol.name for symbol in contract.symbols]
    parameters += [f"int32_t pl_symbol_{name}" for name in symbols]
    return parameters, values + [f".{name} = pl_symbol_{name}" for name in symbols]


def _relocations(contract: Contract, role: Role) -> list[str]:
    """Return plausible constants: consecutive rings and buffers, then the barriers."""
    found, offset, site = [], 0, 1
    barriers = 200 * 1024
    for port in contract.ports:
        if port.role == role.name and port.space in RINGS:
            tensor = port.space == "tensor_memory"
            size = tensor_columns(port) if tensor else item_layout(port).stage_bytes
            data = "128" if tensor else f"shared + {offset}"
            stages = max(port.stages.minimum, min(_STAGES, port.stages.maximum))
            found.append(
                f".{port.name} = pipelink::local_ring({data}, shared + {barriers}, "
                f"{size}, {stages}, {site})"
            )
            offset += 0 if tensor else stages * size
            barriers += 16 * stages
            site += 1
    for buffer in contract.buffers:
        if buffer.role == role.name:
            size = evaluate(buffer.bytes, {})
            offset = -(-offset // buffer.align) * buffer.align
            found.append(f".{buffer.name} = {{shared + {offset}, {size}}}")
            offset += size
    named = [barrier for barrier in contract.named_barriers if role.name in barrier.roles]
    for number, barrier in enumerate(named, 1):
        threads = evaluate(barrier.count, {})
        found.append(f".{barrier.name} = {{{number}, {threads}, {site}, 0}}")
        site += 1
    return found
