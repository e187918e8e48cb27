"""The same objects linked with every build of the device runtime: links, audits, scripts."""

from __future__ import annotations

import pytest
from checkout import Checkout

from pipelink_rules.files.atomic import sha256
from pipelink_rules.files.codec import read_json
from pipelink_rules.launch.compare_recording import expected_of, items_of, known_values
from pipelink_rules.model.linked_kernel import Audit, Manifest

pytestmark = pytest.mark.live
RUNTIMES = ("watchdog", "trace", "jitter", "record")
# A handover and the fewest free registers; named barriers without wgmma; a cluster.
SAMPLES = ("gemm_bias_gelu_epilogue_warps", "rms_norm_wide", "gemm_multicast")
SIZES = {"M": 1000, "N": 512, "K": 192, "R": 300}


@pytest.mark.parametrize("name", SAMPLES)
def test_relinking_the_runtime_alone(built: Checkout, name: str) -> None:
    folder = built.megakernel(name)
    objects = sorted((built.path / "build/sm_90a/variants").glob("*/*.fatbin"))
    before = [(file.stat().st_mtime_ns, sha256(file)) for file in [*objects, *folder.iterdir()]]
    release = read_json(folder / f"{name}.audit.json", Audit)
    codes = {release.text_sha256}
    for runtime in RUNTIMES:
        out = f"build/{runtime}/{name}"
        words = f"link {folder.relative_to(built.path)} -o {out} --runtime {runtime}"
        done = built.run(f"python -m pipelink_rules.cli {words}")
        assert done.returncode == 0, done.stdout + done.stderr
        manifest = read_json(built.path / out / f"{name}.manifest.json", Manifest)
        assert manifest.runtime == runtime
        audit = read_json(built.path / out / f"{name}.audit.json", Audit)
        assert audit.spill_stores == audit.spill_loads == audit.static_shared_bytes == 0
        codes.add(audit.text_sha256)
        assert (manifest.script is not None) == (runtime in ("trace", "record"))
        assert manifest.sites
        if manifest.script:
            check_script(manifest)
    assert len(codes) == 5  # five builds, five kernels
    after = [(file.stat().st_mtime_ns, sha256(file)) for file in [*objects, *folder.iterdir()]]
    assert before == after


def test_a_runtime_that_no_build_keeps_is_compiled(built: Checkout) -> None:
    """A runtime that an earlier build wrote may be of older sources."""
    stale = built.path / "build/sm_90a/runtime/trace.fatbin"
    assert not stale.exists()
    stale.write_bytes(b"of older sources")
    try:
        words = "link build/sm_90a/megakernels/gemm -o build/stale/gemm --runtime trace"
        done = built.run(f"python -m pipelink_rules.cli {words}")
        assert done.returncode == 0, done.stdout + done.stderr
        assert stale.read_bytes() == b"of older sources"
    finally:
        stale.unlink()


def check_script(manifest: Manifest) -> None:
    """Both endpoints of every ring process the same items, as often as declared."""
    assert manifest.script is not None
    known = known_values(manifest.script, SIZES)
    sites = {site.number: site for site in manifest.sites}
    items = items_of(manifest.script, SIZES, 0, 7)
    counts: dict[str, set[int]] = {}
    for role in manifest.script.roles:
        wanted = expected_of(role, items, known, sites)
        for verbs in (("acquire", "wait"), ("commit", "expect", "release")):
            for number, site in sites.items():
                ends = [w for w in wanted if w.verb in verbs and w.site == number]
                if ends and ends[0].op.by_item:  # per-warpgroup rings of an item in sequence
                    ends = [next(w for w in ends if w.item == item) for item in range(items)]
                if ends and site.channel:
                    assert [w.stage for w in ends] == [n % site.stages for n in range(len(ends))]
                    counts.setdefault(site.channel, set()).add(len(ends))
    assert counts and all(len(found) == 1 for found in counts.values()), counts
