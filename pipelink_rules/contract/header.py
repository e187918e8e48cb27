"""The header that a component's source includes: Variant -> `<component>.contract.cuh`.

Parameters become constants in the namespace of the variant, never macros: two variants of one
source must not share a helper.  The only macros select the current variant: `PL_COMPONENT` is its
namespace, `PL_ENTRY(role)` declares its entries.
"""

import hashlib
from collections.abc import Iterable, Sequence

from pipelink_rules.contract.item_layout import item_layout
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import DTYPES, RINGS, Contract, Port, Role
from pipelink_rules.model.variant import Variant

ABI_VERSION = "pipelink/1"
_NO_DIGEST = "0" * 12
_SCALARS = {"f32": "float", "i32": "int32_t", "u32": "uint32_t"}


def cap_words(name: str) -> str:
    """Return `LoadQ` for `load_q`: the stem of the C++ types of a role or port."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def namespace_of(variant: Variant) -> str:
    """Return the namespace of everything that the variant defines."""
    return f"pl_{variant.name}"


def digest_of(variant: Variant, flags: Sequence[str] = ()) -> str:
    """Return 12 hex digits over all inputs of a compiled object except its source."""
    blank = Variant(variant.contract, variant.arguments, variant.flags, _NO_DIGEST)
    parts = (ABI_VERSION, *sorted(flags or variant.flags), emit_header(blank))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def emit_header(variant: Variant) -> str:
    """Return the text of the generated header: deterministic, without paths and dates."""
    contract = variant.contract
    name = contract.component
    arguments = " ".join(f"{key}={value}" for key, value in variant.arguments)
    variant_guard = f"PL_VARIANT_{variant.name}"
    roles = contract.roles
    return "\n".join(
        [
            f"// {name}.contract.cuh: generated from {name}.contract.yaml; do not edit.",
            f"// Variant: {arguments or '(no parameters)'}",
            f"#ifndef PL_CONTRACT_CURRENT_{name}",
            f"#define PL_CONTRACT_CURRENT_{name}",
            "#undef PL_COMPONENT",
            f"#define PL_COMPONENT {namespace_of(variant)}",
            *(line for role in roles for line in _entry_macro(variant, role)),
            f"#ifndef {variant_guard}",
            f"#define {variant_guard}",
            "#include <pipelink/component.cuh>",
            *_dtype_includes(contract),
            "",
            f"namespace {namespace_of(variant)} {{",
            *_constants(variant),
            *(line for port in contract.ports if port.space == "ring" for line in _item(port)),
            *(line for role in roles for line in _role_types(contract, role)),
            f"}}  // namespace {namespace_of(variant)}",
            "",
            *(f"{_prototype(variant, role)};" for role in roles),
            f"#endif  // {variant_guard}",
            f"#endif  // PL_CONTRACT_CURRENT_{name}",
            "",
        ]
    )


def fragment_floats(port: Port) -> int:
    """Return the floats per thread of a register port: a 64 x N fragment over 128 threads."""
    return evaluate(port.members[0].shape[1], {}) // 2


def role_types(variant: Variant, role: Role) -> tuple[str, ...]:
    """Return the C++ types of an entry's structs: relocations (not of a scheduler), ports, work."""
    stem = f"{namespace_of(variant)}::{cap_words(role.name)}"
    kinds = ("Ports", "Work") if role.scheduler else ("Relocations", "Ports", "Work")
    return tuple(stem + kind for kind in kinds)


def _entry_macro(variant: Variant, role: Role) -> list[str]:
    return [
        f"#undef PL_ENTRY_{role.name}",
        f'#define PL_ENTRY_{role.name} extern "C" __device__ void {variant.symbol(role.name)}',
    ]


def _prototype(variant: Variant, role: Role) -> str:
    types = role_types(variant, role)
    if role.scheduler:
        arguments = f"const {types[0]}& port, uint32_t index, {types[1]}& work"
    else:
        arguments = (
            f"const {types[0]}& at, {types[1]}& port, const {types[2]}& work, uint32_t thread"
        )
    return f'extern "C" __device__ void {variant.symbol(role.name)}({arguments})'


def _dtype_includes(contract: Contract) -> list[str]:
    """Include the element types; the glue only forwards pointers and compiles faster without."""
    used = {member.dtype for port in contract.ports for member in port.members}
    headers = {"bf16": "cuda_bf16.h", "f16": "cuda_fp16.h"}
    found = [dtype for dtype in sorted(used) if dtype in headers]
    if not found:
        return []
    return [
        "#ifdef PL_GLUE",
        *(f"struct {DTYPES[dtype][1]};" for dtype in found),
        "#else",
        *(f"#include <{headers[dtype]}>" for dtype in found),
        "#endif",
    ]


def _constants(variant: Variant) -> list[str]:
    types = {param.name: param.type for param in variant.contract.params}
    lines = []
    for key, value in variant.arguments:
        if types[key] == "dtype":
            lines.append(f"using {key} = {DTYPES[str(value)][1]};")
        else:
            lines.append(f"constexpr int k{key} = {value};")
    return [*lines, ""] if lines else []


def _item(port: Port) -> list[str]:
    layout = item_layout(port)
    return [
        f"/// One item of ring `{port.name}`: byte offsets of its tiles in a stage.",
        f"struct {cap_words(port.name)} {{",
        f"  static constexpr uint32_t kBytes = {layout.data_bytes};",
        *(f"  static constexpr uint32_t k{cap_words(n)} = {o};" for n, o in layout.offsets),
        "};",
        "",
    ]


def _role_types(contract: Contract, role: Role) -> list[str]:
    stem = cap_words(role.name)
    lines: list[str] = []
    if not role.scheduler:
        lines += _struct(f"{stem}Relocations", _relocations(contract, role))
    lines += _struct(f"{stem}Ports", _ports(contract, role))
    fields = contract.work.fields if contract.work else ()
    return lines + _struct(f"{stem}Work", (f"int32_t {field.name};" for field in fields))


def _struct(name: str, fields: Iterable[str]) -> list[str]:
    return [f"struct {name} {{", *(f"  {field}" for field in fields), "};", ""]


def _relocations(contract: Contract, role: Role) -> list[str]:
    rings = [p for p in contract.ports if p.role == role.name and p.space in RINGS]
    buffers = [b for b in contract.buffers if b.role == role.name]
    barriers = [b for b in contract.named_barriers if role.name in b.roles]
    return [
        *(f"pipelink::Ring {port.name};" for port in rings),
        *(f"pipelink::Buffer {buffer.name};" for buffer in buffers),
        *(f"pipelink::NamedBarrier {barrier.name};" for barrier in barriers),
    ]


def _ports(contract: Contract, role: Role) -> list[str]:
    mine = [port for port in contract.ports if port.role == role.name]
    lines = [line for port in mine for line in _port_field(port)]
    if role.scheduler and contract.work and contract.work.cluster:
        lines.append("pipelink::ClusterPlace pl_cluster;")
    return lines + [f"int32_t {symbol.name};" for symbol in contract.symbols]


def _port_field(port: Port) -> list[str]:
    if port.space in RINGS:
        return [f"pipelink::Cursor {port.name};"]
    if port.space == "counter":
        return [f"pipelink::Counters {port.name};"]
    if port.space == "scalar":
        return [f"{_SCALARS[port.type]} {port.name};"]
    if port.space == "registers":
        # An in-place port has no separate registers: the source changes those of its in port.
        return [] if port.in_place else [f"float (&{port.name})[{fragment_floats(port)}];"]
    if port.tile is not None:
        return [f"const pipelink::TensorMap* {port.name};"]
    kind = DTYPES[port.members[0].dtype][1]
    return [f"{'const ' if port.direction == 'in' else ''}{kind}* {port.name};"]
