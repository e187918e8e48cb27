"""A CUDA toolkit that only looks like one: nvcc, nvlink, ptxas and cuobjdump in one script.

Installed by `fake_toolkit.py` under each tool's name.  Every call is recorded in `log.jsonl` of
the project's TMPDIR.  "Objects" are JSON: a digest over the source without comments, the entries it
defines, the kernels it has.  Comments in a source steer the tools:

    // fake: registers=64     registers that the entries of this source need
    // fake: sleep=3          the compiler takes that many seconds
    // fake: edits=FILE       the compiler's user saves FILE while it runs
    // fake: noawait          its store waits for nothing
    // fake: raw              it arrives on a barrier by itself
    // fake: unaudited        it does what depends on data
    // fake: nodepfile        the compiler is a wrapper that drops -MMD
"""

import hashlib
import json
import math
import os
import re
import struct
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = Path(os.environ.get("TMPDIR", ROOT))
TOOL = Path(sys.argv[0]).name
ARGV = sys.argv[1:]
VERSION = "Cuda compilation tools, release 13.5, V13.5.37"
VALUED = {"-o", "-MF", "-gencode", "--keep-dir", "-Xcicc", "-std", "-arch"}


def record() -> None:
    line = json.dumps({"tool": TOOL, "argv": ARGV, "cwd": os.getcwd(), "pid": os.getpid()})
    with open(SCRATCH / "log.jsonl", "a") as stream:
        stream.write(line + "\n")


def option(name: str, default: str = "") -> str:
    """`-o X`, `-arch=X`."""
    for position, word in enumerate(ARGV):
        if word == name:
            return ARGV[position + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return default


def inputs() -> list[str]:
    found, skip = [], False
    for word in ARGV:
        if skip:
            skip = False
        elif word in VALUED:
            skip = True
        elif not word.startswith("-"):
            found.append(word)
    return found


def bare(text: str) -> str:
    """The text as code: without comments (but those to us) and without empty lines."""
    lines = []
    for line in text.splitlines():
        code, slashes, comment = line.partition("//")
        kept = f"{slashes}{comment}" if comment.strip().startswith("fake:") else ""
        if (code.strip() + kept).strip():
            lines.append(code.rstrip() + kept)
    return "\n".join(lines)


class Preprocessor:
    def __init__(self) -> None:
        self.folders = [word[2:] for word in ARGV if word.startswith("-I")]
        self.folders.append(str(ROOT / "include"))
        self.files: list[str] = []
        self.text: list[str] = []
        self.macros: dict[str, str] = {}

    def read(self, path: str) -> None:
        if path in self.files:
            return
        self.files.append(path)
        text = Path(path).read_text()
        for match in re.finditer(r'^\s*#\s*define\s+(\w+)\s+(["<].*[">])', text, re.M):
            self.macros[match[1]] = match[2]
        for number, line in enumerate(text.splitlines(), 1):
            stop = re.match(r"\s*#\s*error\s+(.*)", line)
            if stop:
                sys.exit(f"{path}({number}): error: {stop[1]}\n")
            include = re.match(r"\s*#\s*include\s+(\S+)", line)
            if include:
                name = self.macros.get(include[1], include[1])
                self.include(name.strip('"<>'), path, number)
        self.text.append(bare(text))

    def include(self, name: str, by: str, line: int) -> None:
        for folder in (os.path.dirname(by) or ".", *self.folders):
            path = os.path.normpath(os.path.join(folder, name))
            if os.path.isfile(path):
                return self.read(path)
        if name.startswith(("pipelink", "_")) or ("/" not in name and not name.endswith(".cuh")):
            return None  # the toolkit's own headers
        sys.exit(f"{by}:{line}:1: fatal error: {name}: No such file or directory\n")


def role_ptx(name: str, text: str) -> str:
    """The code of an entry: that of its role, with the parameters of its header."""
    templates = dict(re.findall(r"^// role (\w+)\n([^/]*)", (ROOT / "roles.ptx").read_text(), re.M))
    elements = re.search(r"constexpr int kD = (\d+);", text)
    empty = ".visible .func @name@ ()\n{\nret;\n}\n"
    code = templates.get(name.split("_")[-2], empty)
    if "// fake: noawait" in text:
        code = re.sub(r"\{[^{}]*pl_store_wait[^{}]*\}\n", "", code)
    if "// fake: raw" in text:
        code = code.replace("ret;", "mbarrier.arrive.shared.b64 _, [%r1];\nret;")
    if "// fake: unaudited" in text:
        code = code.replace("ret;", "@%p9 st.u32 [%rd9], 0;\nret;")
    row = 2 * int(elements[1]) if elements else 0
    return code.replace("@name@", name).replace("@bytes@", str(row))


def nvcc() -> None:
    if "--version" in ARGV:
        return print(VERSION)
    if "--list-gpu-arch" in ARGV:
        return print("compute_90a\ncompute_100a")
    (source,) = inputs()
    text = Path(source).read_text()
    steer = dict(re.findall(r"// fake: (\w+)=?(\S*)", text))
    time.sleep(float(steer.get("sleep", 0)))
    if "edits" in steer:
        with open(steer["edits"], "a") as stream:
            stream.write("int saved_by_an_editor;\n")
    reader = Preprocessor()
    reader.read(source)
    text = "\n".join(reader.text)
    symbols = dict(re.findall(r"#define PL_ENTRY_(\w+) [^\n]*\b(pl_\w+_[0-9a-f]{12})", text))
    entries = [
        symbols[role] for role in re.findall(r"^PL_ENTRY\((\w+)\)", text, re.M) if role in symbols
    ]
    kernels = re.findall(r"__global__[^;{]*?\b(\w+)\s*\(\s*(?!\d)", text)
    stem = Path(source).stem
    registers = int(steer.get("registers", 24))
    ptx = "".join(role_ptx(name, text) for name in entries)
    if "-ptx" in ARGV:
        Path(option("-o")).write_text(f".version 9.0\n.target sm_90a\n{ptx}")
        return None
    if option("--keep-dir"):
        Path(option("--keep-dir"), f"{stem}.ptx").write_text(ptx)
    if option("-MF") and "nodepfile" not in steer:
        names = " \\\n  ".join(reader.files)
        Path(option("-MF")).write_text(
            f"{option('-o')} : {names} \\\n  {ROOT}/include/cuda_runtime.h\n"
        )
    data = {
        "archs": sorted(set(re.findall(r"lto_(\w+)", option("-gencode")))),
        "code": hashlib.sha256(text.encode()).hexdigest(),
        "entries": dict.fromkeys(entries, registers),
        "flags": sorted(word for word in ARGV if re.match(r"--(ftz|fmad|prec-)", word)),
        "kernels": kernels,
        "needs": sorted(set(re.findall(r"\bpl_\w+_[0-9a-f]{12}(?=\()", text))),
        "setmaxnreg": [int(n) for n in re.findall(r"(?:give|take)_registers<(\d+)>", text)],
        "ptx": f".version 9.0\n.target sm_90a\n{ptx}",
        "threads": bounds(text),
        "path": f"{os.getcwd()}/{source}",  # as with the real one, whose bytes depend on it
    }
    Path(option("-o")).write_text("FAKEBIN" + json.dumps(data, sort_keys=True))
    return None


def bounds(text: str) -> list[int]:
    """[threads, CTAs per SM] of the first kernel."""
    found = re.search(r"__launch_bounds__\((\d+)(?:,\s*(\d+))?\)", text)
    return [int(found[1]), int(found[2] or 1)] if found else [128, 1]


def load(path: str) -> dict:
    return json.loads(Path(path).read_text().removeprefix("FAKEBIN"))


def cuobjdump() -> None:
    for path in inputs():
        data = load(path)
        for arch in data["archs"]:
            flags = " ".join(f"-{f.strip('-').replace('-', '_')}" for f in data["flags"])
            flags = flags.replace("true", "1").replace("false", "0")
            print(
                f"\nFatbin nvvm code:\n================\narch = sm_{arch}\nnvvmOptions = {flags}\n"
            )


def ptxas() -> None:
    if "--version" in ARGV:
        return print(VERSION)
    (source,) = inputs()
    text = Path(source).read_text()
    name = re.search(r"\.entry (\w+)", text)[1]
    limit = int(re.search(r"\.maxnreg (\d+)", text)[1])
    needed = int(re.search(r"// needs (\d+)", text)[1])
    spill = 8 if limit < needed else 0
    print(f"ptxas info    : Compiling entry function '{name}' for '{option('-arch')}'")
    print(f"ptxas info    : Function properties for {name}")
    print(f"    {spill} bytes stack frame, {spill} bytes spill stores, {spill} bytes spill loads")
    print(
        f"ptxas info    : Used {min(limit, needed)} registers, used 1 barriers, 400 bytes cmem[0]"
    )
    Path(option("-o")).write_text("cubin")
    return None


def nvlink() -> None:
    if "--version" in ARGV:
        return print(VERSION)
    steering = SCRATCH / "nvlink.json"
    steer = json.loads(steering.read_text()) if steering.is_file() else {}
    if steer.get("only", "") in " ".join(ARGV):
        time.sleep(float(steer.get("sleep", 0)))
    objects = [load(path) for path in inputs()]
    arch = option("-arch").removeprefix("sm_")
    for path, one in zip(inputs(), objects, strict=True):
        if arch not in one["archs"]:
            sys.exit(f"nvlink error   : SM Arch ('sm_{arch}') not found in '{path}'")
    entries = {k: v for one in objects for k, v in one["entries"].items()}
    for name in sorted({name for one in objects for name in one["needs"]} - set(entries)):
        sys.exit(f"nvlink error   : Undefined reference to '{name}' in 'glue'")
    out = Path(option("-o"))
    if "-emit-ptx" in ARGV and "-r" in ARGV:
        out.write_text(objects[0]["ptx"])
        return None
    if "-emit-ptx" in ARGV:
        needed = max(entries.values(), default=24)
        kernels = [name for one in objects for name in one["kernels"]]
        out.write_text(
            "".join(
                f".visible .entry {name}(\n)\n.maxntid 128, 1, 1\n{{\n// needs {needed}\nret;\n}}\n"
                for name in kernels
            )
        )
        return None
    (glue,) = [one for one in objects if one["kernels"]]
    (kernel,) = glue["kernels"]
    threads, ctas = glue["threads"]
    registers = min(255, 16384 // (32 * math.ceil(threads / 32 * ctas / 4)) // 8 * 8)
    code = {
        "code": sorted(one["code"] for one in objects),
        "entries": entries,
        "setmaxnreg": glue["setmaxnreg"],
    }
    out.write_bytes(cubin(kernel, json.dumps(code, sort_keys=True).encode(), registers))
    print(f"ptxas info    : Compiling entry function '{kernel}' for 'sm_{arch}'")
    print(f"ptxas info    : Function properties for {kernel}")
    print("    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads")
    print(f"ptxas info    : Used {registers} registers, used 1 barriers")
    return None


def cubin(kernel: str, code: bytes, registers: int) -> bytes:
    """An ELF file with one kernel, whose code is our description of it."""
    strings = b"\0" + kernel.encode() + b"\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 4, 0, len(code))
    info = struct.pack("<BBHII", 4, 0x2F, 8, 1, registers)
    parts = [
        ("", 0, b"", 0),
        (".shstrtab", 3, b"", 0),
        (".strtab", 3, strings, 0),
        (".symtab", 2, symbols, 2),
        (f".text.{kernel}", 1, code, 0),
        (".nv.info", 0x70000000, info, 3),
    ]
    names = b"".join(name.encode() + b"\0" for name, *_ in parts)
    parts[1] = (".shstrtab", 3, names, 0)
    data, rows, offset = b"", [], 64
    for name, kind, body, link in parts:
        at = names.index(name.encode() + b"\0") if name else 0
        rows.append(struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, offset, len(body), link, 0, 1, 24))
        data, offset = data + body, offset + len(body)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 2, 190, 1, 0, 0, offset, 0, 64, 0, 0, 64, len(parts), 1
    )
    return head + data + b"".join(rows)


def nvdisasm() -> None:
    data = Path(inputs()[-1]).read_bytes()
    kernel = re.search(rb"\.text\.(\w+)", data)[1].decode()
    code = json.JSONDecoder().raw_decode(data[data.index(b'{"code"') :].decode("latin-1"))[0]
    lines = [f'\t.section\t.text.{kernel},"ax",@progbits', f".text.{kernel}:"]
    words = [f"USETMAXREG 0x{value:x}" for value in code["setmaxnreg"]]
    for number, word in enumerate([*words, "EXIT"]):
        lines.append(f"        /*{number * 16:04x}*/                   {word} ;")
    print("\n".join(lines))


if __name__ == "__main__":
    record()
    sys.exit(globals()[TOOL]())
