"""`pipelink inspect FILE`: the contents of a file of a build, as text."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pipelink_rules.cli.command_io import existing, read_json
from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.diagnostics.text_table import format_table
from pipelink_rules.files.codec import read_data
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import BuildRecord, Variant

_STAGES = ("spec", "check", "program", "plan", "placement", "audit", "interface", "twin")


def run_inspect(arguments: argparse.Namespace) -> int:
    """Print the description."""
    path = existing(arguments.file)
    name = path.name
    if not path.is_file():
        raise error("PL0010", f"{name} is not a file", Span(str(path)), expected="a file")
    if name.endswith(".contract.yaml"):
        text = "\n".join(_contract_file(path))
    elif name.endswith(".manifest.json"):
        text = "\n".join(_manifest(read_json(path, Manifest)))
    elif name.endswith((".fatbin", ".cubin")):
        text = _binary(path, arguments.build)
    elif name.endswith(tuple(f".{stage}.json" for stage in _STAGES)):
        text = json.dumps(read_data(path), indent=2)
    else:
        raise error(
            "PL0010",
            f"{name} is not a file that a build writes",
            Span(str(path)),
            expected=".contract.yaml, .manifest.json, .fatbin, .cubin, or a stage's .json",
            found=path.suffix or name,
        )
    sys.stdout.write(text.rstrip() + "\n")
    return 0


def _contract_file(path: Path) -> Iterator[str]:
    from pipelink_rules.contract.load import load_contract
    from pipelink_rules.contract.sidecar import load_sidecar

    if b"\ninterface:" not in b"\n" + path.read_bytes():
        yield from describe_contract(load_contract(path), ())
        return
    variant, build = load_sidecar(path)
    yield from describe_variant(variant, build)


def describe_variant(variant: Variant, build: BuildRecord) -> Iterator[str]:
    """Yield a sidecar: the bound contract, the measured registers, the build record."""
    values = " ".join(f"{name}={value}" for name, value in variant.arguments)
    yield f"variant {variant.name}: {values or 'no parameters'}"
    yield f"flags: {' '.join(variant.flags) or 'the default ones'}"
    yield from describe_contract(variant.contract, build.probe or variant.measured)
    yield ""
    yield f"built with toolkit {build.toolkit}"
    yield from format_table(("file", "sha256"), build.objects)
    weak = [(item.name, item.kind, item.body[:16]) for item in build.weak]
    if weak:
        yield ""
        yield from format_table(("weak symbol", "kind", "body"), weak)


def describe_contract(contract: Contract, measured: object) -> Iterator[str]:
    """Roles and ports of a contract, bound or not."""
    probed = dict(measured) if isinstance(measured, tuple) else {}
    archs = ", ".join(contract.archs)
    yield f"component {contract.component} {contract.version} for {archs}: {contract.summary}"
    if contract.params:
        names = ", ".join(f"{item.name}: {item.type}" for item in contract.params)
        yield f"parameters: {names}"
    rows = []
    for role in contract.roles:
        found = probed.get(role.name)
        probe = f"{found.registers}/{found.entry}" if found else "-"
        needs = (role.registers.minimum, role.registers.want, role.registers.entry, probe)
        rows.append((role.name, role.warps, role.converged, *needs))
    yield ""
    yield from format_table(("role", "warps", "converged", "min", "want", "entry", "probe"), rows)
    ports = []
    for port in contract.ports:
        members = (f"{item.dtype} [{', '.join(map(str, item.shape))}]" for item in port.members)
        carries = port.type or " + ".join(members)
        ports.append((port.name, port.space, port.direction, port.role, carries))
    if ports:
        yield ""
        yield from format_table(("port", "space", "way", "role", "carries"), ports)


def _manifest(manifest: Manifest) -> Iterator[str]:
    from pipelink_rules.launch.signature import docstring_of

    yield docstring_of(manifest)
    yield ""
    rows = [
        (number, item.kind, item.name, item.dtype, list(item.box) or "", ", ".join(item.ports))
        for number, item in enumerate(manifest.parameters)
    ]
    yield from format_table(("#", "kind", "name", "dtype", "box", "serves"), rows, "")


def _binary(path: Path, build: str) -> str:
    """Return the output of cuobjdump: resources of a cubin, images of a fatbin."""
    from pipelink_rules.toolkit.find import find_toolkit

    toolkit = find_toolkit(build)
    if not toolkit.cuobjdump:
        raise error(
            "PL1206",
            "the toolkit has no cuobjdump",
            expected="cuobjdump",
            suggestions=("python -m pip install 'pipelink[toolkit]'",),
        )
    options = ["-res-usage"] if path.suffix == ".cubin" else []
    found = subprocess.run(
        [toolkit.cuobjdump, *options, str(path)], capture_output=True, text=True, check=False
    )
    return found.stdout + found.stderr
