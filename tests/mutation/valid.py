"""Programs that are right by construction: components of the repository, joined as they may."""

from __future__ import annotations

import random
from typing import Any

EPILOGUES = ("bias", "gelu", "gelu_tanh", "relu", "residual")
MOST_BYTES = 65536  # of one ring item


def declaration(seed: int) -> dict[str, Any]:
    """Keywords of `env.Megakernel` for a seed."""
    rng = random.Random(f"valid {seed}")
    made = _gemm(rng) if rng.random() < 0.5 else _rows(rng)
    return {"name": f"valid_{seed}", **made}


def _gemm(rng: random.Random) -> dict[str, Any]:
    """load -> mma -> up to three epilogues -> store, partly on separate warps."""
    groups = rng.choice((1, 2))
    tile = {"TM": 64 * groups, "TN": rng.choice((64, 128, 192, 256)), "TK": 64}
    dtype = {"T": rng.choice(("bf16", "f16"))}
    instances: dict[str, Any] = {
        "tiles": ("//components/scheduler:persistent_tiles", {"GROUP": rng.choice((1, 4, 16))}),
        "load": ("//components/gemm:tma_load_ab", {**tile, **dtype}),
        "mma": ("//components/gemm:wgmma_mainloop", {**tile, **dtype, "WG": groups}),
    }
    connect, tensors = {"mma.ab": "load.ab"}, {"a": "load.A", "b": "load.B"}
    last, chain = "mma.acc", []
    for number in range(rng.randint(0, 3)):
        kind = rng.choice(EPILOGUES)
        name = f"{kind}{number}"
        dtype = {"T": rng.choice(("bf16", "f32"))} if kind in ("bias", "residual") else {}
        instances[name] = (f"//components/epilogue:{kind}", dtype)
        if dtype:
            end = "vector" if kind == "bias" else "addend"
            tensors[f"{end}{number}"] = f"{name}.{end}"
        connect[f"{name}.acc"] = last
        chain.append(f"{name}.acc")
        last = f"{name}.out"
    instances["store"] = ("//components/epilogue:tma_store", {"T": rng.choice(("bf16", "f16"))})
    connect["store.acc"] = last
    chain.append("store.acc")
    tensors["out"] = "store.C"
    transfers = {rng.choice(chain): "handover"} if rng.random() < 0.4 else {}
    return {
        "instances": instances,
        "connect": connect,
        "tensors": tensors,
        "transfers": transfers,
        "stages": {"load.ab": rng.randint(2, 4)} if rng.random() < 0.3 else {},
    }


def _rows(rng: random.Random) -> dict[str, Any]:
    """load -> up to three normalisations or additions -> store."""
    while True:
        rows, width = rng.choice((1, 2, 4, 8, 16)), 256 * rng.randint(1, 16)
        if rows * width * 4 <= MOST_BYTES:
            break
    block = {"ROWS": rows, "D": width}
    dtype = {"T": rng.choice(("bf16", "f16"))}
    instances: dict[str, Any] = {
        "rows": ("//components/scheduler:row_blocks", {"ROWS": rows}),
        "load": ("//components/stream:bulk_load_rows", {**block, **dtype}),
    }
    connect: dict[str, str] = {}
    tensors, scalars = {"x": "load.X"}, {}
    last = "load.block"
    for number in range(rng.randint(1, 3)):
        name = f"step{number}"
        if rng.random() < 0.5:
            instances[name] = ("//components/stream:rms_norm", {**block, **dtype})
            tensors[f"weight{number}"], scalars[f"eps{number}"] = f"{name}.weight", f"{name}.eps"
        else:
            other = f"other{number}"
            wide = {**block, "T": "f32"}
            instances[other] = ("//components/stream:bulk_load_rows", wide)
            instances[name] = ("//components/stream:scaled_add", {**block, **dtype})
            connect[f"{name}.z"] = f"{other}.block"
            tensors[f"z{number}"], scalars[f"alpha{number}"] = f"{other}.X", f"{name}.alpha"
        connect[f"{name}.x"] = last
        last = f"{name}.y"
    instances["store"] = ("//components/stream:bulk_store_rows", {**block, **dtype})
    connect["store.block"] = last
    tensors["y"] = "store.Y"
    return {"instances": instances, "connect": connect, "tensors": tensors, "scalars": scalars}


def findings_of(seed: int) -> list[str]:
    """What collect and check say to it: nothing, if there is no false alarm."""
    import shipped_declarations

    from pipelink_rules.check.check import check, resolve_checked
    from pipelink_rules.diagnostics.diagnostic import PipelinkError
    from pipelink_rules.model.target import TARGETS
    from pipelink_rules.program.infer import bind_instances
    from pipelink_rules.program.spec import parse_declaration

    try:
        spec = parse_declaration(**declaration(seed))
        program = resolve_checked(
            spec, bind_instances(spec, shipped_declarations.contracts(), {}), "sm_90a"
        )
        found = check(program, TARGETS["sm_90a"])
    except PipelinkError as problem:
        found = problem.diagnostics
    return [f"{item.code}: {item.message}" for item in found]
