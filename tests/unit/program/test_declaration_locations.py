"""Entries of a declaration are found in the text of the SConscript."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.program.declaration_locations import duplicates, locate

TEXT = """
TILE = {"TM": 128}

for size in (1, 2):
    env.Other(name="x", tensors={"a": "load.A"})

env.Megakernel(
    name="gemm",
    instances={
        "load": ("//c:load", {**TILE, "TN": 64}),
        "größe": ("//c:mma", TILE), "mma": ("//c:mma", TILE),
    },
    connect={"mma.ab": "load.ab"},
    tensors={"a": "load.A", "b": ["load.B", "mma.B"]},
)
"""
CALL = 7


def found(*path: str) -> tuple[int, str]:
    """Line and characters of an entry."""
    place = locate(TEXT, CALL, *path)
    assert place is not None
    line = TEXT.split("\n")[place.line - 1]
    return place.line, line[place.column - 1 : place.column - 1 + place.length]


def test_the_call_itself() -> None:
    assert found() == (7, "env.Megakernel")


def test_a_keyword() -> None:
    assert found("connect") == (13, "connect")


def test_a_key_of_a_section() -> None:
    assert found("instances", "load") == (10, '"load"')
    assert found("connect", "mma.ab") == (13, '"mma.ab"')


def test_a_value_of_an_entry() -> None:
    assert found("connect", "mma.ab", "load.ab") == (13, '"load.ab"')
    assert found("instances", "load", "//c:load") == (10, '"//c:load"')


def test_a_string_of_a_list() -> None:
    assert found("tensors", "b", "mma.B") == (14, '"mma.B"')


def test_call_is_distinguished_from_others_with_the_same_key() -> None:
    assert found("tensors", "a") == (14, '"a"')


def test_characters_are_counted_not_bytes() -> None:
    assert found("instances", "mma") == (11, '"mma"')


def test_a_parameter_behind_a_name() -> None:
    assert found("instances", "load", "TN") == (10, '"TN"')
    assert found("instances", "load", "TM") == (2, '"TM"')
    assert found("instances", "mma", "TM") == (2, '"TM"')


def test_what_is_not_written_has_no_place() -> None:
    assert locate(TEXT, CALL, "connect", "store.acc") is None
    assert locate(TEXT, CALL, "instances", "nobody", "TM") is None
    assert locate("", 1, "connect") is None
    assert locate("env.Megakernel(", 1, "connect") is None


def test_a_key_is_found_in_the_whole_call_without_a_section() -> None:
    assert found("load.ab") == (13, '"load.ab"')


def test_keys_written_twice_are_found() -> None:
    text = 'f(connect={"a.x": "b.y",\n  "c.x": "b.y",\n  "a.x": "d.y"}, instances={})'
    ((path, first, second),) = duplicates(text, 1)
    assert path == ("connect", "a.x")
    assert (first.line, second.line) == (1, 3)
    assert duplicates(TEXT, CALL) == ()


KEYS = st.lists(st.text("abcÄ.x0", min_size=1, max_size=6), min_size=1, max_size=6, unique=True)


@given(keys=KEYS, separators=st.data())
def test_every_key_is_found_where_it_was_put(keys: list[str], separators: st.DataObject) -> None:
    text, places = "f(section={", {}
    for key in keys:
        text += separators.draw(st.sampled_from([" ", "\n", "\n    ", "# ä\n"]))
        head, _, tail = text.rpartition("\n")
        places[key] = (text.count("\n") + 1, len(tail if head or "\n" in text else text) + 1)
        text += f'"{key}": "ß",'
    text += "})"
    for key in keys:
        place = locate(text, 1, "section", key)
        assert place is not None
        assert (place.line, place.column) == places[key]
