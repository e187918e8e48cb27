"""Self-test of a toolkit: compiles and links two objects -> the reason of a failure, or ''.

A version number is not sufficient: nvlink 13.0 and 13.1 drop the `a` of sm_90a, wheels lack the
libnvvm.so that nvlink opens, and a link of the wrong objects succeeds with an empty kernel.
"""

import json
import re
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pipelink_rules.toolkit.layout import Layout
from pipelink_rules.toolkit.process import ToolOutput, child_argv, child_environment, run_tool
from pipelink_rules.toolkit.toolkit import minimal_environment

ARCH = "90a"  # the architecture whose features a broken linker loses
ENTRY = "pl_toolkit_probe"
_TIMEOUT = 120.0
_SOURCES = {
    "scale": 'extern "C" __device__ float pl_toolkit_scale(float x) { return x * 2.0f; }\n',
    "entry": """extern "C" __device__ float pl_toolkit_scale(float);
extern "C" __global__ void __launch_bounds__(256, 1) pl_toolkit_probe(float* out) {
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    out[threadIdx.x] = pl_toolkit_scale(out[threadIdx.x]);
  }
}
""",
}


def tool_environment(layout: Layout, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the minimal environment for the tools of a candidate."""
    folders = (str(layout.nvcc.parent), str(layout.host_compiler.parent))
    return minimal_environment(folders, environ)


def probe(layout: Layout, nvvmpath: Path, scratch: Path, environ: Mapping[str, str]) -> str:
    """Return why the toolkit cannot link components with nvlink, '' if it can."""

    def link(folder: Path, environment: Mapping[str, str]) -> str:
        argv = [str(layout.nvlink), "-Werror", "-lto", f"-nvvmpath={nvvmpath}"]
        argv += [f"-L{layout.libraries}", "-lcudadevrt", f"-arch=sm_{ARCH}", "-Xptxas=-v"]
        argv += [f"{stem}.fatbin" for stem in sorted(_SOURCES)] + ["-o", "probe.cubin"]
        output = run_tool(argv, environment, cwd=folder, timeout=_TIMEOUT)
        return _verdict(output, folder / "probe.cubin", "nvlink")

    return _with_objects(layout, scratch, environ, link)


def probe_nvjitlink(layout: Layout, scratch: Path, environ: Mapping[str, str]) -> str:
    """Return why the toolkit cannot link components with libnvJitLink, '' if it can."""
    if layout.nvjitlink is None:
        return "the toolkit has no libnvJitLink"

    def link(folder: Path, environment: Mapping[str, str]) -> str:
        job = {
            "library": str(layout.nvjitlink),
            "options": [f"-arch=sm_{ARCH}", "-lto", "-verbose"],
            "objects": [str(folder / f"{stem}.fatbin") for stem in sorted(_SOURCES)],
            "output": str(folder / "probe.cubin"),
        }
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        argv = child_argv("pipelink_rules.toolkit.nvjitlink_child", str(folder / "job.json"))
        output = run_tool(argv, child_environment(environment), timeout=_TIMEOUT)
        return _verdict(output, folder / "probe.cubin", "libnvJitLink")

    return _with_objects(layout, scratch, environ, link)


def _with_objects(
    layout: Layout,
    scratch: Path,
    environ: Mapping[str, str],
    link: Callable[[Path, Mapping[str, str]], str],
) -> str:
    """Compile the objects in a private folder and link them there; return what fails first."""
    scratch.mkdir(parents=True, exist_ok=True)
    environment = tool_environment(layout, environ)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="probe_") as folder:
        return _compile(layout, Path(folder), environment) or link(Path(folder), environment)


def _compile(layout: Layout, folder: Path, environment: Mapping[str, str]) -> str:
    def one(stem: str) -> ToolOutput:
        (folder / f"{stem}.cu").write_text(_SOURCES[stem], encoding="utf-8")
        gencode = f"arch=compute_{ARCH},code=lto_{ARCH}"
        argv = [str(layout.nvcc), "-std=c++17", "-O3", "-rdc=true", "--fatbin"]
        argv += ["-gencode", gencode, f"{stem}.cu", "-o", f"{stem}.fatbin"]
        return run_tool(argv, environment, cwd=folder, timeout=_TIMEOUT)

    with ThreadPoolExecutor(len(_SOURCES)) as pool:
        for output in pool.map(one, sorted(_SOURCES)):
            if not output.ok:
                return f"its nvcc cannot compile a component: {first_line(output)}"
    return ""


def _verdict(output: ToolOutput, cubin: Path, linker: str) -> str:
    if re.search(r"not supported on \.target 'sm_90'", output.text):
        return (
            f"its {linker} drops the 'a' of sm_90a at link time, so setmaxnreg and wgmma do not"
            " assemble; nvlink 13.2 and later keep it"
        )
    if "linker library load error" in output.text:
        return f"its {linker} cannot load libnvvm: {first_line(output)}"
    if not output.ok:
        return f"its {linker} cannot link two components: {first_line(output)}"
    if re.search(r"setmaxnreg.*ignored|ignored.*setmaxnreg", output.text):
        return f"its {linker} ignores setmaxnreg"
    # A link without code for the architecture succeeds with an empty cubin.
    if not cubin.exists() or f".text.{ENTRY}".encode() not in cubin.read_bytes():
        return f"its {linker} returned success without the linked kernel"
    return ""


def first_line(output: ToolOutput) -> str:
    """Return the first line of a tool's text that reports an error."""
    if output.timed_out:
        return f"not finished within {_TIMEOUT:.0f} s"
    lines = [line.strip() for line in output.text.splitlines() if line.strip()]
    for line in lines:
        if re.search(r"\b(error|fatal|ERROR)\b", line):
            return line
    return lines[0] if lines else f"exit status {output.code}"
