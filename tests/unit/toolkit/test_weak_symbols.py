"""Bodies of shared names: equal where the code is equal, whatever path, label or order."""

from __future__ import annotations

import re

import pytest

from pipelink_rules.toolkit.weak_symbols import demangle, find_clashes, weak_table

HEAD = ".version 9.5\n.target sm_90a\n.address_size 64\n"


def function(name: str, body: str, linkage: str = ".weak ") -> str:
    return (
        f"{linkage}.func (.param .b32 func_retval0) {name}(\n\t.param .b32 {name}_param_0\n)\n"
        f"{{\n\t.reg .b32 %r<4>;\n\tld.param.b32 %r1, [{name}_param_0];\n{body}\tret;\n}}\n"
    )


def bodies(text: str) -> dict[str, str]:
    return {symbol.name: symbol.body for symbol in weak_table(HEAD + text)}


def test_only_weak_definitions_are_shared() -> None:
    text = (
        function("_Z3onei", "")
        + function("local", "", "")
        + function("entry", "", ".visible ")
        + ".weak .const .align 4 .b8 table[4] = {1};\n.global .align 4 .b8 mine[4] = {1};\n"
    )
    assert [(s.name, s.kind) for s in weak_table(HEAD + text)] == [
        ("_Z3onei", "func"),
        ("table", "data"),
    ]


def test_a_number_in_the_body_counts() -> None:
    one = bodies(function("_Z3onei", "\tmul.lo.s32 %r2, %r1, 64;\n"))
    two = bodies(function("_Z3onei", "\tmul.lo.s32 %r2, %r1, 32;\n"))
    assert one != two


def test_a_type_in_the_signature_counts() -> None:
    text = function("_Z3onei", "")
    assert bodies(text) != bodies(text.replace(".param .b32", ".param .b64"))


def test_labels_depots_and_white_space_do_not_count() -> None:
    loop = "$L__BB{n}_1:\n\tadd.s32 %r1, %r1, 1;\n\t@%p1 bra $L__BB{n}_1;\n"
    depot = "\t.local .align 4 .b8 __local_depot{n}[4];\n\tmov.b64 %rd1, __local_depot{n};\n"
    asm = "{{\nW{n}: add.s32 %r2, %r1, 1;\n@p bra W{n};\n}}\n"
    texts = [
        function("_Z3onei", (depot + loop + asm).format(n=n).replace("\t", "  " * n))
        for n in (1, 7)
    ]
    assert bodies(texts[0]) == bodies(texts[1])


def test_names_with_a_path_in_them_stand_for_their_bodies() -> None:
    def unit(path: str, factor: int) -> str:
        inner = f"_ZN30_INTERNAL_{path}_4_v_cu_e4statEi"
        call = f"\tcall.uni (retval0), {inner}, (param0);\n"
        return function("_Z3onei", call) + function(
            inner, f"\tmul.lo.s32 %r2, %r1, {factor};\n", ""
        )

    assert bodies(unit("983a0f23", 3)) == bodies(unit("11112222", 3))
    assert bodies(unit("983a0f23", 3)) != bodies(unit("983a0f23", 4))


def test_recursion_between_internal_functions_ends() -> None:
    def unit(tag: str) -> str:
        ping, pong = f"ping_{tag}", f"pong_{tag}"
        return (
            function("_Z3onei", f"\tcall.uni {ping}, (param0);\n")
            + function(ping, f"\tcall.uni {pong}, (param0);\n", "")
            + function(pong, f"\tcall.uni {ping}, (param0);\n", "")
        )

    assert bodies(unit("a")) == bodies(unit("b"))


@pytest.mark.parametrize("value", [5, 6])
def test_tables_are_compared_by_their_values(value: int) -> None:
    text = ".weak .global .align 4 .b8 table[4] = {5};\n"
    same = bodies(text) == bodies(text.replace("{5}", f"{{{value}}}"))
    assert same == (value == 5)


def test_what_else_is_in_the_object_does_not_count() -> None:
    text = function("_Z3onei", "\tmul.lo.s32 %r2, %r1, 64;\n")
    assert bodies(text).items() <= bodies(function("_Z4morei", "") + text).items()


def test_clashes_name_the_owners_of_each_body() -> None:
    def table(factor: int) -> tuple:
        return weak_table(HEAD + function("_Z3onei", f"\tmul.lo.s32 %r2, %r1, {factor};\n"))

    (clash,) = find_clashes({"b": table(3), "a": table(2), "c": table(3), "d": ()})
    assert clash.name == "_Z3onei"
    assert clash.owners == (("a",), ("b", "c"))
    assert not find_clashes({"a": table(2), "b": table(2)})


def test_spelled_for_people_where_the_tool_is_there() -> None:
    found = demangle(["_Z6helperi", "not_mangled"])
    assert found["not_mangled"] == "not_mangled"
    assert re.fullmatch(r"helper\(int\)|_Z6helperi", found["_Z6helperi"])
    assert demangle([]) == {}
