"""What a kernel whose CTAs wait for each other gets from the launcher, in glue and manifest."""

from __future__ import annotations

from pathlib import Path

from link_fixtures import audit_of_demo
from shipped_declarations import placement_of, program_of

from pipelink_rules.glue.emit import emit_glue
from pipelink_rules.glue.operation_script import script_of, watchdog_sites
from pipelink_rules.glue.parameters import kernel_parameters, workspaces
from pipelink_rules.model.linked_kernel import ScriptLoop, Workspace
from pipelink_rules.report.manifest import manifest_of

NAME = "gemm_split_k"
TILES = "ceildiv(M, 128) * ceildiv(N, 128)"


def test_the_workspace_is_what_connections_share() -> None:
    assert workspaces(program_of(NAME)) == (
        Workspace("store.done", "counters", "u32", TILES, True),
        Workspace("store.partials", "scratch", "f32", f"({TILES}) * (16) * (16384)", False),
    )
    assert workspaces(program_of("gemm")) == ()


def test_both_ends_get_one_parameter() -> None:
    parameters = kernel_parameters(program_of(NAME))
    assert [(item.kind, item.name, item.ports) for item in parameters[3:5]] == [
        ("counters", "store.done", ("store.done", "store.ready")),
        ("scratch", "store.partials", ("store.partials", "store.sums")),
    ]
    text = emit_glue(program_of(NAME), placement_of(NAME))
    assert "uint32_t* store_done_counters," in text
    assert ".sums = store_partials_scratch," in text
    # The arrivals of a signal are those of the role that signals, at both ends.
    assert "counters_of(store_done_counters, 8, pipelink::kGpuScope, 3)" in text
    assert "counters_of(store_done_counters, 8, pipelink::kGpuScope, 4)" in text


def test_the_manifest_says_that_ctas_wait(tmp_path: Path) -> None:
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(b"cubin")
    for name, waits in ((NAME, True), ("gemm", False)):
        manifest = manifest_of(program_of(name), placement_of(name), audit_of_demo(), cubin)
        assert (manifest.coresident, bool(manifest.workspace)) == (waits, waits)


def test_counters_have_sites_that_reports_name() -> None:
    found = {site.port: site for site in watchdog_sites(program_of(NAME))}
    assert found["done"].channel == found["ready"].channel == "store.done"
    assert found["done"].stages == 0


def test_the_script_has_signals_and_waits() -> None:
    script = script_of(program_of(NAME), dict(placement_of(NAME).warps))
    role = next(item for item in script.roles if item.name == "mma+store")
    loops = [step for step in role.body if isinstance(step, ScriptLoop)]
    verbs = {step.verb: step.text for loop in loops for step in loop.body if hasattr(step, "verb")}
    assert verbs["signal"].startswith("store.store: signal done[tile]")
    assert verbs["wait_until"].startswith("store.store: wait_until ready[tile] 16")
