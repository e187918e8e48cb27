"""Images of a fat binary: cuobjdump's text -> architectures, kinds of code, codegen flags."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.model.source_span import Span
from pipelink_rules.toolkit.process import run_tool
from pipelink_rules.toolkit.toolkit import Toolkit

_IMAGE = re.compile(r"^Fatbin (\w+) code:\s*\n=+\s*\n(.*?)(?=^Fatbin |\Z)", re.M | re.S)


@dataclass(frozen=True)
class FatbinImage:
    """One image of a fat binary."""

    kind: str  # "nvvm" (link-time code), "ptx", "elf"
    arch: str  # "sm_90a"
    flags: tuple[tuple[str, str], ...]  # of link-time code: ("fmad", "1"), sorted


def images_of(fatbin: str | Path, toolkit: Toolkit) -> tuple[FatbinImage, ...]:
    """Return the images that cuobjdump lists; PL1206 without it, PL0904 if there are none."""
    if not toolkit.cuobjdump:
        raise error(
            "PL1206",
            "cuobjdump was not found, so objects cannot be inspected",
            expected="cuobjdump beside nvcc or on PATH",
            suggestions=("python -m pip install 'pipelink[toolkit]'",),
            subject="cuobjdump",
        )
    output = run_tool([toolkit.cuobjdump, str(fatbin)], toolkit.environment(os.environ), timeout=60)
    found = tuple(read_images(output.text))
    if not output.ok or not found:
        raise error(
            "PL0904",
            f"{Path(fatbin).name} is not a fat binary with device code",
            Span(str(fatbin)),
            found=output.text[:200] or "no images",
            suggestions=("rebuild the component",),
            subject=str(fatbin),
        )
    return found


def read_images(text: str) -> list[FatbinImage]:
    """Return the images in cuobjdump's listing."""
    found = []
    for kind, body in _IMAGE.findall(text):
        arch = re.search(r"^arch = (\S+)", body, re.M)
        options = re.search(r"^nvvmOptions = (.*)$", body, re.M)
        flags = re.findall(r"-(\w+)=(\S+)", options[1]) if options else []
        found.append(FatbinImage(kind, arch[1] if arch else "", tuple(sorted(flags))))
    return found


def codegen_of(fatbin: str | Path, toolkit: Toolkit) -> tuple[tuple[str, str], ...]:
    """Return the code-generation flags that the compiler recorded in the link-time code."""
    return next((image.flags for image in images_of(fatbin, toolkit) if image.kind == "nvvm"), ())
