"""The probe kernel: the role as a linked kernel would call it, and nothing that folds away."""

from __future__ import annotations

import re

from shipped_declarations import contracts

from pipelink_rules.compile.register_probe_source import probe_source
from pipelink_rules.contract.bind import bind

TILE = {"TM": 128, "TN": 256, "TK": 64}


def source_of(label: str, **arguments: int | str) -> str:
    return probe_source(bind(contracts()[label], arguments))


def test_relocations_are_constants_and_accumulators_are_read_back() -> None:
    text = source_of("//components/gemm:wgmma_mainloop", **TILE, WG=2)
    assert "__launch_bounds__(256)" in text
    assert ".ab = pipelink::local_ring(shared + 0, shared + 204800, 49152, 4, 1)" in text
    assert "float acc[128];" in text
    assert "probe.results[i * 1024 + threadIdx.x] = acc[i];" in text
    assert "acc[i] = probe.fragments" not in text  # it is written by the role


def test_accumulators_that_come_in_are_loaded_and_stored_only_where_they_leave() -> None:
    bias = source_of("//components/epilogue:bias", **TILE)
    store = source_of("//components/epilogue:tma_store", **TILE)
    for text in (bias, store):
        assert "acc[i] = probe.fragments" in text
    assert "probe.results" in bias.split("threadIdx.x);")[1]
    assert "probe.results" not in store.split("threadIdx.x);")[1]


def test_tensor_maps_pointers_and_symbols_are_parameters() -> None:
    text = source_of("//components/gemm:tma_load_ab", TM=128, TN=256)
    head = re.search(r"pl_probe_load\((.*)\) \{", text)
    assert head
    names = [part.split()[-1] for part in head[1].split(", ")]
    assert names == ["probe", "A", "B", "pl_symbol_M", "pl_symbol_N", "pl_symbol_K"]
    assert ".A = &A" in text


def test_a_schedule_is_probed_by_what_it_computes() -> None:
    text = source_of("//components/scheduler:persistent_tiles", **TILE)
    assert "__launch_bounds__(32)" in text
    assert "_port, item, pl_work);" in text
    assert text.count("__int_as_float(pl_work.") == 3


def test_a_probe_has_no_path_and_is_deterministic() -> None:
    one = source_of("//components/gemm:tma_load_ab", TM=128, TN=256)
    assert one == source_of("//components/gemm:tma_load_ab", TM=128, TN=256)
    assert "/" not in re.sub(r"//[^\n]*|<[^>]*>", "", one)
