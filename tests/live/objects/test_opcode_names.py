"""The table of opcodes names instructions that the assembler knows, and nothing else."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelink_rules.audit.opcode_table import OPCODES
from pipelink_rules.toolkit.command_lines import ptxas_argv
from pipelink_rules.toolkit.toolkit import Toolkit

pytestmark = pytest.mark.live
# Instructions that have no name without one of these modifiers.
_FORMS = """
brx.idx clusterlaunchcontrol.try_cancel.async cp.async.bulk createpolicy.fractional mad24.lo.s32
madc.lo.s32 mbarrier.init mul24.lo.s32 multimem.red setmaxnreg.inc shf.l.wrap suld.b.1d
sured.b.add.1d sust.b.1d tcgen05.alloc tensormap.replace wgmma.fence.sync.aligned
wmma.load.a.sync
"""
FORMS = {form.split(".")[0]: form for form in _FORMS.split()}
UNKNOWN = "Not a name of any known instruction"


def is_known(name: str, toolkit: Toolkit, folder: Path) -> bool:
    """Whether ptxas rejects an instruction without operands for another reason than its name."""
    path = folder / f"{name}.ptx"
    head = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry f()\n"
    path.write_text(f"{head}{{\n{name};\nret;\n}}\n")
    argv = ptxas_argv(toolkit, "sm_100a", str(path), str(path.with_suffix(".cubin")))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    return UNKNOWN not in done.stderr + done.stdout


def test_each_opcode_is_known_to_ptxas(toolkit: Toolkit, tmp_path: Path) -> None:
    bases = {name.split(".")[0] for name in OPCODES}
    names = sorted(FORMS.get(base, base) for base in bases)
    with ThreadPoolExecutor(2) as pool:
        known = list(pool.map(lambda name: is_known(name, toolkit, tmp_path), names))
    assert [name for name, found in zip(names, known, strict=True) if not found] == []
    assert not is_known("frobnicate", toolkit, tmp_path)
