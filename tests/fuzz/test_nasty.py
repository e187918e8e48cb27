"""Files that are made to hurt: a finding with a place, within a second and 200 MB."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import fuzz_seeds as seeds
import pytest
from fuzz_kinds import KINDS
from fuzz_verdict import MEGABYTES, peak_megabytes, verdict_of
from link_fixtures import cubin

ALIASES = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))
TEXTS = {
    "empty": b"",
    "null bytes": b"\0" * 5000,
    "UTF-16": "contract: 2".encode("utf-16"),
    "a byte order mark alone": b"\xef\xbb\xbf",
    "Latin-1": "summary: Größe".encode("latin-1"),
    "alias bomb": f"a0: &a0 [x]\n{ALIASES}\n".encode(),
    "an alias of itself": b"a: &a [*a]\nsidecar: 1\n",
    "merge keys": b"a: &a {x: 1}\nb:\n  <<: [*a, *a]\n",
    "a tag that would run code": b"!!python/object/apply:os.system ['touch /tmp/pl_owned']\n",
    "deep lists": b"[" * 40_000,
    "deep mappings": b"a:\n" + b"".join(b" " * n + b"- a:\n" for n in range(1, 400)),
    "deep flow mappings": b"{a: " * 3_000,
    "many lists": b"[" + b"[]," * 40_000 + b"]",
    "many mappings": b"[" + b"{}," * 40_000 + b"]",
    "many keys": b"{" + b",".join(b'"%d":1' % n for n in range(3_000)) + b"}",
    "larger than any": b'{"x": "' + b"y" * 5_000_000 + b'"}',
    "a long line": b"x: " + b"y" * 40_000,
    "a long number": b"contract: " + b"9" * 40_000,
    "numbers of base 60": b"sidecar: 1\ndigests: {a: " + b"1" + b":1" * 5_000 + b"}\n",
    "a JSON number": b"9" * 40_000,
    "NaN": b"NaN",
    "Infinity": b'{"name": Infinity}',
    "1e999": b'{"name": 1e999}',
    "keys twice": b'{"name": "a", "name": "b"}',
    "half of a pair": b'{"name": "\\ud800"}',
    "documents": b"a: 1\n---\na: 2\n" * 2000,
    "line breaks": b"\n" * 40_000,
    "carriage returns": b"\r" * 40_000,
    "quotes": b'"' * 50_001,
    "braces": b"{" * 3_000,
    "closing braces": b"}" * 3_000,
    "open comment": b"/*" * 40_000,
    "labels": b"a:\n" * 5_000,
    "semicolons": b";" * 3_000,
    "a statement without an end": b".func f() {\n" + b"x\n" * 40_000 + b"}",
    "functions that call each other": b"".join(
        b".func f%d() {\ncall f%d;\n}\n" % (n, n + 1) for n in range(1500)
    ),
    "a weak function over many": b".weak .func g() {\ncall f0;\n}\n"
    + b"".join(b".func f%d() {\ncall f%d;\n}\n" % (n, n + 1) for n in range(1500)),
    "digits": b"1" * 3_000 + b" bytes",
    "registers": b"ptxas info    : Used " + b"1" * 6000 + b" registers\n",
    "an open quote, often": b"Undefined reference to '" * 40_000,
    "instructions": b"\t.section\t.text.demo,\n" + b"        /*0000*/ BRA `(.L_x_1) ;\n" * 5_000,
    "a line of code": b"        /*0000*/ " + b"A" * 3_000,
    "backslashes": b"a: " + b"\\ " * 40_000,
    "escapes": b"\x1b[31m" * 3_000,
}
DATA = ("contract", "sidecar", "program", "manifest")
CODE = ("ptx", "machine code", "linker log")
IN_CODE = list(TEXTS).index("line breaks")  # those from here on are meant for code and logs


@pytest.mark.parametrize("name", (*DATA, *CODE))
def test_nasty_text(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    kind.read(kind.good()[0], tmp_path)
    faults = []
    for what, data in list(TEXTS.items())[IN_CODE if name in CODE else 0 :]:
        before = peak_megabytes()
        verdict = verdict_of(
            lambda data=data: kind.read(data, tmp_path), str(tmp_path), kind.positions
        )
        if verdict.outcome == "fault":
            faults.append(f"{what}: {verdict.reason}")
        if peak_megabytes() - before > MEGABYTES:
            faults.append(f"{what}: {peak_megabytes() - before:.0f} MB")
    assert not faults
    assert not Path("/tmp/pl_owned").exists()


def _elf(**fields: int) -> bytes:
    """The sample with fields of its header overwritten."""
    data = bytearray(seeds.elf())
    places = {"shoff": ("<Q", 40), "size": ("<H", 58), "count": ("<H", 60), "names": ("<H", 62)}
    for name, value in fields.items():
        form, at = places[name]
        struct.pack_into(form, data, at, value)
    return bytes(data)


def _overlapping() -> bytes:
    """A thousand sections, each of which is the whole file."""
    data = bytearray(cubin({f"k{n}": b"x" for n in range(1000)}) + bytes(1 << 20))
    at = struct.unpack_from("<Q", data, 40)[0]
    for number in range(struct.unpack_from("<H", data, 60)[0]):
        struct.pack_into("<QQ", data, at + 64 * number + 24, 0, len(data))
    return bytes(data)


CUBINS = {
    "no section headers": _elf(count=0),
    "headers behind the end": _elf(shoff=2**63),
    "headers of no size, many": _elf(size=0, count=65535),
    "names behind the end": _elf(names=65535),
    "overlapping sections": _overlapping(),
    "a header alone": seeds.elf()[:64],
    "of 32 bits": b"\x7fELF\x01" + seeds.elf()[5:],
}


@pytest.mark.parametrize("what", CUBINS)
def test_nasty_cubin(what: str, tmp_path: Path) -> None:
    before = peak_megabytes()
    kind = KINDS["cubin"]
    verdict = verdict_of(lambda: kind.read(CUBINS[what], tmp_path), str(tmp_path), positions=False)
    assert verdict.outcome == "refused" and verdict.codes == ("PL0904",), verdict
    assert peak_megabytes() - before < MEGABYTES


@pytest.mark.parametrize("name", ["contract", "program", "manifest", "sidecar", "placement"])
@pytest.mark.parametrize("what", ["folder", "loop", "pipe", "missing", "secret"])
def test_what_is_no_file(name: str, what: str, tmp_path: Path) -> None:
    """Folders, links to themselves, pipes; a link to a file elsewhere is read as any other."""
    kind = KINDS[name]
    kind.read(kind.good()[0], tmp_path)
    written = max(tmp_path.iterdir(), key=lambda item: (item.name.startswith("x."), item.name))
    names = [item for item in tmp_path.iterdir() if item.name.startswith("x.")]
    path = names[0] if names else written
    path = tmp_path / "y" / path.name
    path.parent.mkdir()
    if what == "folder":
        path.mkdir()
    elif what == "loop":
        path.symlink_to(path)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "secret":
        path.symlink_to("/etc/passwd")
    from pipelink_rules.contract.load import load_contract
    from pipelink_rules.contract.sidecar import load_sidecar
    from pipelink_rules.files.codec import read_json
    from pipelink_rules.launch import load
    from pipelink_rules.model.program import Program

    readers = {"contract": load_contract, "sidecar": load_sidecar, "manifest": load}
    read = readers.get(name, lambda file: read_json(file, Program))
    verdict = verdict_of(lambda: read(path), str(tmp_path), positions=True)
    assert verdict.outcome == "refused", verdict


@pytest.mark.parametrize("name", ["../x.cubin", "/etc/passwd", "a/b.cubin", "..", "", "a\\b", "."])
def test_a_manifest_reaches_nothing_beside_its_folder(name: str, tmp_path: Path) -> None:
    kind = KINDS["manifest"]
    data = json.loads(kind.good()[0])
    data["cubin"] = name
    (tmp_path / "x.cubin").write_bytes(seeds.elf())
    folder = tmp_path / "inside"
    folder.mkdir()
    verdict = verdict_of(lambda: kind.read(json.dumps(data).encode(), folder), str(tmp_path))
    assert verdict.outcome == "refused" and verdict.codes == ("PL1400",), verdict
