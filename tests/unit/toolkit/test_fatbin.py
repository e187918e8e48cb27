"""What cuobjdump says of an object."""

from __future__ import annotations

from pipelink_rules.compile.object import runtime_file
from pipelink_rules.toolkit.fatbin import FatbinImage, read_images
from pipelink_rules.toolkit.weak_symbols import weak_file

LISTING = """
Fatbin ptx code:
================
arch = sm_90a
code version = [9,5]
compressed
ptxasOptions = --compile-only

Fatbin nvvm code:
=================
arch = sm_90a
code version = [1,67]
compressed
nvvmOptions = -ftz=1 -prec_div=0 -prec_sqrt=0 -fmad=1

Fatbin nvvm code:
=================
arch = sm_100a
nvvmOptions = -ftz=0 -prec_div=1 -prec_sqrt=1 -fmad=1
"""


def test_images_with_their_flags() -> None:
    fast = (("fmad", "1"), ("ftz", "1"), ("prec_div", "0"), ("prec_sqrt", "0"))
    plain = (("fmad", "1"), ("ftz", "0"), ("prec_div", "1"), ("prec_sqrt", "1"))
    assert read_images(LISTING) == [
        FatbinImage("ptx", "sm_90a", ()),
        FatbinImage("nvvm", "sm_90a", fast),
        FatbinImage("nvvm", "sm_100a", plain),
    ]
    assert read_images("cuobjdump info: no device code") == []


def test_files_beside_an_object() -> None:
    assert str(weak_file("build/demo.glue.fatbin")) == "build/demo.glue.weak.json"
    assert runtime_file("release") == "release.fatbin"
    assert runtime_file("release", ("prec-div=false", "ftz=true")) == (
        "release-ftz_true-prec-div_false.fatbin"
    )
