"""Linker texts: what failed, and what was done silently."""

from __future__ import annotations

import pytest

from pipelink_rules.link.linker_log import link_failure, read_log

COMMAND = ("nvlink", "a.fatbin")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nvlink fatal   : Cicc option values for '-ftz' do not match", "PL1208"),
        ("nvlink error   : SM Arch ('sm_90a') not found in 'v1a.fatbin'", "PL1207"),
        ("ERROR 3: bad input: v1a.fatbin\nnvjitlink fatal: ERROR_INVALID_INPUT (3)", "PL1207"),
        ("nvlink fatal   : elfLink nvvm error", "PL1202"),
        ("ERROR 4 in nvvmAddNVVMContainerToProgram, may need newer version of nvJitLink", "PL1202"),
        ("ptxas fatal   : Unresolved extern function 'e2'", "PL1210"),
        ("error   : Undefined reference to 'pl_ring_wait' in 'a.fatbin'", "PL1210"),
        ("error: Linking globals named 'e1': symbol multiply defined!", "PL1211"),
        ("error   : Multiple definition of 'e1' in 'a', first defined in 'b'", "PL1211"),
        ("nvlink fatal   : elfLink linker library load error", "PL1204"),
        ("ptxas error : (C7602) Insufficient registers ... register target of 154", "PL0927"),
        ("nvlink fatal   : Could not open input file 'g.fatbin'", "PL1209"),
    ],
)
def test_reasons_of_failure(text: str, code: str) -> None:
    finding = link_failure(text, "demo", "nvlink 13.5", COMMAND)
    assert finding.code == code
    assert text.splitlines()[0][:40] in finding.found
    assert finding.notes == ("command: nvlink a.fatbin",)


def test_an_entry_of_another_version_is_explained() -> None:
    text = "Unresolved extern function 'pl_scale_apply_0123456789ab'"
    assert "digest" in link_failure(text, "demo", "nvlink", COMMAND).suggestions[0]
    text = "Unresolved extern function 'pl_ring_wait'"
    assert "runtime" in link_failure(text, "demo", "nvlink", COMMAND).suggestions[0]


def test_partial_optimisation_is_seen_although_the_link_succeeds() -> None:
    line = "nvlink info    : requested LTO but 'a.fatbin' not built for LTO so doing partial LTO\n"
    assert read_log(line * 2, "nvlink", COMMAND).partial == ("a.fatbin",)
    assert read_log("", "nvlink", COMMAND).partial == ()
