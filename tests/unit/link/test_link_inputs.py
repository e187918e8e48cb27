"""Which objects may be linked together."""

from __future__ import annotations

from pathlib import Path

import pytest
from link_fixtures import image, link_object, toolkit_of

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.files.atomic import sha256, write_text
from pipelink_rules.files.codec import read_json, to_json
from pipelink_rules.link.link import link
from pipelink_rules.link.link_inputs import LinkObject, check_objects, shared_names
from pipelink_rules.model.variant import WeakSymbol, WeakTable


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Objects whose files are as their sidecars say."""
    monkeypatch.chdir(tmp_path)

    def make(component: str, **more: object) -> LinkObject:
        path = tmp_path / f"{component}.fatbin"
        path.write_text(component)
        return link_object(component, objects=((path.name, sha256(path)),), **more)

    return make


def check(*objects: LinkObject, version: str = "13.5.37") -> list[Diagnostic]:
    return list(check_objects(objects, "sm_90a", toolkit_of(version=version)))


def test_alike_objects_may_be_linked(made) -> None:
    assert check(made("scale"), made("bias")) == []


@pytest.mark.parametrize(
    ("compiler", "linker", "code"),
    [
        ("13.5.37", "13.5.37", ""),
        ("13.5.40", "13.5.37", ""),  # a patch does not change the intermediate code
        ("13.2.86", "13.5.37", ""),
        ("13.6.1", "13.5.37", "PL1202"),
        ("13.10.1", "13.9.0", "PL1202"),
        ("12.9.86", "13.5.37", "PL1203"),
        ("14.0.1", "13.5.37", "PL1203"),
    ],
)
def test_the_linker_is_as_new_as_the_compiler(made, compiler: str, linker: str, code: str) -> None:
    found = [item.code for item in check(made("scale", compiler=compiler), version=linker)]
    assert found == ([code] if code else [])


def test_every_object_has_code_for_the_exact_target(made) -> None:
    fine = made("both", images=(image("sm_90a"), image("sm_100a"), image("sm_90a", "ptx")))
    plain = made("plain", images=(image("sm_90"),))
    ready = made("ready", images=(image("sm_90a", "elf"),))
    assert [(item.code, item.subject) for item in check(fine, plain, ready)] == [
        ("PL1207", "plain"),
        ("PL1207", "ready"),
    ]


def test_flags_of_another_target_do_not_count(made) -> None:
    other = made("other", images=(image(), image("sm_100a", ftz="1")))
    assert check(made("scale"), other) == []
    mixed = check(made("scale"), made("bias", images=(image(ftz="1", prec_div="0"),)))
    assert [(item.code, item.subject) for item in mixed] == [
        ("PL1208", "ftz"),
        ("PL1208", "prec-div"),
    ]


def test_an_object_that_changed_after_its_sidecar(made) -> None:
    changed = made("scale")
    Path(changed.path).write_text("other bytes")
    assert [item.code for item in check(changed)] == ["PL0904"]


def weak(body: str, name: str = "_Z3padi") -> tuple[WeakSymbol, ...]:
    return (WeakSymbol(name, "func", body),)


def test_names_clash_only_with_other_bodies() -> None:
    one, two = link_object("one", weak=weak("a")), link_object("two", weak=weak("a"))
    assert not list(shared_names([one, two]))
    three = link_object("three", weak=weak("b"))
    (finding,) = shared_names([one, two, three])
    assert finding.code == "PL0903"
    assert "`one_" in finding.message and "`three_" in finding.message


def test_other_compilers_are_named_as_a_possible_cause() -> None:
    one = link_object("one", weak=weak("a"), compiler="13.2.86", fingerprint="a" * 64)
    (finding,) = shared_names([one, link_object("two", weak=weak("b"))])
    assert any("13.2.86" in text for text in finding.suggestions)


def test_a_table_beside_glue_is_read_back(tmp_path: Path) -> None:
    table = weak("a") + weak("b", "_Z3onei")
    write_text(tmp_path / "glue.weak.json", to_json(WeakTable(table)))
    assert read_json(tmp_path / "glue.weak.json", WeakTable).symbols == table


def test_unknown_back_ends_are_refused_before_anything_is_read() -> None:
    with pytest.raises(PipelinkError) as problem:
        link(["missing.fatbin"], "demo", "sm_90a", toolkit_of(), "ld", "demo.cubin")
    assert problem.value.diagnostics[0].code == "PL1214"
    with pytest.raises(PipelinkError) as problem:
        link([], "demo", "sm_90a", toolkit_of(), "nvjitlink", "demo.cubin")
    assert problem.value.diagnostics[0].code == "PL1214"
