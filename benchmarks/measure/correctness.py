"""Compare results with float64 on ragged shapes, and a thousand launches with the first."""

from __future__ import annotations

from typing import Any

from benchmarks.measure.benchmark_kernels import Subject, make_inputs, make_outputs, sizes_of
from benchmarks.measure.harness import deadline, note

RELATIVE = 2.0**-8  # bf16 keeps 8 bits: half a unit in the last place is 2^-9


def check_shapes(subject: Subject) -> list[dict[str, Any]]:
    """Return one row per shape: largest error over its allowance (correct below 1), and more."""
    assert subject.reference is not None
    rows = []
    for number, shape in enumerate(subject.reference.shapes):
        row = check_shape(subject, shape, seed=number)
        note(f"  {subject.name} {row['sizes']}: {row['verdict']}")
        rows.append(row)
    return rows


def check_shape(subject: Subject, shape: dict[str, int], seed: int) -> dict[str, Any]:
    """Launch once on fresh inputs and compare every element of every output."""
    import torch

    manifest, reference = subject.kernel.manifest, subject.reference
    assert reference is not None
    sizes = sizes_of(manifest, shape)
    inputs = make_inputs(manifest, sizes, reference.scalars, seed)
    outputs = make_outputs(manifest, sizes)
    for output in outputs.values():
        output.poison()
    arrays = {name: output.array for name, output in outputs.items()}
    with deadline(f"{subject.name} {sizes}"):
        subject.kernel(**inputs, **arrays)
        torch.cuda.synchronize()
    exact = reference.compute(
        {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
    )
    (output,) = outputs.values()
    found = output.array.double()
    unwritten = int(found.isnan().sum())
    error = (found - exact).abs()
    worst = float((error / (RELATIVE * exact.abs() + reference.absolute)).nan_to_num(1e9).max())
    norm = float(error.norm() / exact.norm().clamp(min=1e-30))
    intact = output.guards_intact()
    problems = [
        *([f"{unwritten} elements not written"] if unwritten else []),
        *([f"error {worst:.2f} of what is allowed"] if worst >= 1 and not unwritten else []),
        *(["written outside the output"] if not intact else []),
    ]
    return {
        "megakernel": subject.name,
        "sizes": sizes,
        "worst": round(worst, 4),
        "relative_norm": norm,
        "unwritten": unwritten,
        "guards_intact": intact,
        "verdict": "; ".join(problems) or "ok",
    }


def check_repeats(subject: Subject, launches: int) -> dict[str, Any]:
    """Launch repeatedly on one input; every result must have the bits of the first."""
    import torch

    manifest, reference = subject.kernel.manifest, subject.reference
    assert reference is not None
    sizes = sizes_of(manifest, reference.repeated)
    inputs = make_inputs(manifest, sizes, reference.scalars, seed=99)
    (output,) = make_outputs(manifest, sizes).values()
    arrays = {output.name: output.array}
    output.poison()
    subject.kernel(**inputs, **arrays)
    first = output.array.view(torch.int16).clone()
    differing = torch.zeros((), dtype=torch.int64, device="cuda")
    with deadline(f"{subject.name}, {launches} launches", 120):
        for _ in range(launches):
            output.poison()
            subject.kernel(**inputs, **arrays)
            differing += (output.array.view(torch.int16) != first).any()
        torch.cuda.synchronize()
    count = int(differing)
    return {
        "megakernel": subject.name,
        "sizes": sizes,
        "launches": launches,
        "differing": count,
        "verdict": "ok" if count == 0 else f"{count} launches differ",
    }


def check_graph(subject: Subject) -> dict[str, Any]:
    """Capture a call in a CUDA graph and replay it on new contents of the same arrays."""
    import torch

    manifest, reference = subject.kernel.manifest, subject.reference
    assert reference is not None
    sizes = sizes_of(manifest, reference.repeated)
    inputs = make_inputs(manifest, sizes, reference.scalars, seed=7)
    (output,) = make_outputs(manifest, sizes).values()
    arrays = {output.name: output.array}
    graph = torch.cuda.CUDAGraph()
    subject.kernel(**inputs, **arrays)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        subject.kernel(**inputs, **arrays)
    other = make_inputs(manifest, sizes, reference.scalars, seed=8)
    for name, value in other.items():
        if isinstance(value, torch.Tensor):
            inputs[name].copy_(value)
    subject.kernel(**inputs, **arrays)
    wanted = output.array.clone()
    output.poison()
    graph.replay()
    torch.cuda.synchronize()
    same = bool((output.array.view(torch.int16) == wanted.view(torch.int16)).all())
    return {"megakernel": subject.name, "verdict": "ok" if same else "the replay differs"}
