"""What reads each kind of input?  The commands and stages that a user would enter with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz_seeds as seeds
import shipped_declarations

from pipelink_rules.model.target import TARGETS
from pipelink_rules.model.variant import Variant

Read = Callable[[Path], object]


def contract(path: Path) -> object:
    from pipelink_rules.contract.bind import bind
    from pipelink_rules.contract.load import load_contract

    contract = load_contract(path)
    given = {
        p.name: p.choices[0] if p.choices else 64 for p in contract.params if p.default is None
    }
    return bind(contract, given, (), contract.span)


def declaration(keywords: Any, folder: Path) -> object:
    from pipelink_rules.check.check import check
    from pipelink_rules.diagnostics.diagnostic import error
    from pipelink_rules.model.source_span import Span
    from pipelink_rules.program.infer import bind_instances
    from pipelink_rules.program.resolve import resolve
    from pipelink_rules.program.spec import parse_declaration

    place = Span("SConscript", 1, 1)
    if not isinstance(keywords, dict) or not {"name", "instances"} <= set(keywords):
        return None  # Python itself says so
    known = parse_declaration.__kwdefaults__ or {}
    names = {
        *parse_declaration.__code__.co_varnames[: parse_declaration.__code__.co_argcount],
        *known,
    }
    spec = parse_declaration(**{k: v for k, v in keywords.items() if k in names}, span=place)
    contracts = shipped_declarations.contracts()
    for item in spec.instances:
        if item.label not in contracts:
            raise error("PL1302", "no such component", place)
    program = resolve(spec, bind_instances(spec, contracts, {}), spec.archs[0])
    return check(program, TARGETS[program.target])


def command(*words: str) -> Callable[[Any], object]:
    """A command of `pipelink`, entered as `main` enters it, findings raised."""

    def enter(path: Path) -> object:
        import contextlib
        import io

        from pipelink_rules.cli import parse_arguments, perform

        places = {
            "FILE": str(path),
            "FOLDER": str(path.parent),
            "OUT": str(path.parent / "out.json"),
        }
        filled = [places.get(word, word) for word in words]
        root = str(shipped_declarations.REPOSITORY)
        arguments = parse_arguments([*filled, "--root", root, "--diag", "json"])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            perform(arguments)
        return said.getvalue().encode()

    return enter


def beside(files: Callable[[], dict[str, bytes]], read: Read) -> Read:
    """A reader that needs the good files of other stages beside the broken one."""
    kept: dict[str, bytes] = {}

    def with_others(path: Path) -> object:
        if not kept:
            kept.update(files())
        for name, data in kept.items():
            if name != path.name:
                (path.parent / name).write_bytes(data)
        return read(path)

    return with_others


def stage_files() -> dict[str, bytes]:
    from pipelink_rules.files.codec import to_json

    name = seeds.ENTRY
    return {
        f"{name}.program.json": to_json(shipped_declarations.program_of(name)).encode(),
        f"{name}.placement.json": seeds.placements()[0],
        f"{name}.audit.json": to_json(seeds.audit()).encode(),
    }


def map(path: Path) -> object:
    return command("map", "FILE")(path.parent / f"{seeds.ENTRY}.program.json")


def glue(path: Path) -> object:
    from pipelink_rules.actions.stage_actions import write_glue
    from pipelink_rules.diagnostics.internal_error import reporting_internal_errors

    stem = path.parent / seeds.ENTRY
    program, placement = f"{stem}.program.json", f"{stem}.placement.json"
    with reporting_internal_errors("glue", program, placement):  # as every step of a build
        return write_glue(program, placement, path.parent / "glue.cu")


def placed_again(path: Path) -> object:
    return command("place", "FOLDER", "-o", "-", "--keep", "FILE")(path)


def compared(path: Path) -> object:
    return command("diff", "FOLDER", "FOLDER")(path)


def map_and_glue(path: Path) -> object:
    glue(path)
    return map(path)


def manifests() -> list[bytes]:
    import tempfile

    from pipelink_rules.files.codec import to_json

    with tempfile.TemporaryDirectory() as folder:
        return [to_json(seeds.manifest(Path(folder))).encode()]


def manifest(path: Path) -> object:
    from pipelink_rules.launch import load

    command("inspect", "FILE")(path)
    (path.parent / f"{seeds.ENTRY}.cubin").write_bytes(seeds.elf())
    kernel = load(path)
    sizes = {name: max(low, 128) for name, low, _, _ in kernel.manifest.symbols}
    return kernel.grid_of(sizes, 132), kernel.__doc__


def interface(path: Path) -> object:
    from pipelink_rules.files.codec import read_json

    return read_json(path, Variant)


def findings(path: Path) -> object:
    from pipelink_rules.diagnostics.diagnostic import CheckResult
    from pipelink_rules.diagnostics.render import render_text
    from pipelink_rules.files.codec import read_json

    return render_text(read_json(path, CheckResult).diagnostics).encode()


def elf(data: bytes, folder: Path) -> object:
    from pipelink_rules.link.elf import Elf

    elf = Elf(data)
    read = (elf.code, elf.static_shared, elf.registers, elf.stack_bytes)
    return [part(name) for name in elf.kernels()[:50] for part in read]


def sass(data: bytes, folder: Path) -> object:
    from pipelink_rules.link.sass import KernelCode, section_of

    code = KernelCode(section_of(data.decode("utf-8", "replace"), "demo"))
    return (
        *(len(code), code.calls, code.last_calls, code.setmaxnreg, code.barriers),
        *(code.regions, code.entry_region),
    )


def ptx(data: bytes, folder: Path) -> object:
    from link_fixtures import bare_variant

    from pipelink_rules.compile.ptx_scan import Sources, scan
    from pipelink_rules.toolkit.ptx import read_ptx
    from pipelink_rules.toolkit.weak_symbols import weak_table

    text = data.decode("utf-8", "replace")
    weak_table(text)
    return scan(read_ptx(text), bare_variant("scale"), Sources({"scale.cu": text}), frozenset())


def role_code(data: bytes, folder: Path) -> object:
    """An audit may say anything of a damaged role, but says it."""
    from pipelink_rules.audit.audit_component import audit_component
    from pipelink_rules.toolkit.ptx import read_ptx

    module = read_ptx(data.decode("utf-8", "replace"))
    return [
        audit_component(module, variant, strict=True).diagnostics
        for variant, _ in seeds.raw_roles()
    ]


def log(data: bytes, folder: Path) -> object:
    from pipelink_rules.link.linker_log import link_failure, read_log

    text = data.decode("utf-8", "replace")
    return read_log(text, "nvlink", ()), link_failure(text, "demo", "nvlink", ("nvlink",))


def compiler(data: bytes, folder: Path) -> object:
    from pipelink_rules.toolkit.compiler_errors import Subject, diagnose
    from pipelink_rules.toolkit.process import ToolOutput

    contract = shipped_declarations.contracts()["//components/gemm:wgmma_mainloop"]
    text = data.decode("utf-8", "replace")
    return diagnose(ToolOutput(("nvcc",), 1, text, 0.0), Subject("it", contract, "kTM = 1;"))


def listing(data: bytes, folder: Path) -> object:
    from pipelink_rules.toolkit.fatbin import read_images

    return read_images(data.decode("utf-8", "replace"))


def depfile(path: Path) -> object:
    from pipelink_rules.actions.header_deps import require_declared

    return require_declared("//a:b", "scale.cu", path, DECLARED, ("/usr",))


DECLARED = (
    "kernels/scale.cu",
    "kernels/with space.cuh",
    "components/include/pipelink/abi.cuh",
    "build/sm_90a/variants/scale_1/scale.contract.cuh",
)


def kept(path: Path) -> object:
    from pipelink_rules.actions.build_key import lookup

    return lookup(path, "0" * 64, Variant)


def kept_good() -> list[bytes]:
    import hashlib

    return [
        b"0" * 64 + b" " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
        for body in seeds.interfaces()
    ]
