"""A small valid contract that tests change in one place."""

SAMPLE = """\
contract: 2
component: scale_rows
version: 1.0.0
summary: Multiply a block of rows by a number.
arch: [sm_90a]

params:
  ROWS: {type: int, in: [1, 2, 4, 8], default: 4}
  D: {type: int, min: 8, max: 8192, multiple_of: 8}
  T: {type: dtype, in: [bf16, f16], default: bf16}

symbols:
  R: {min: 1}

where:
  - ROWS * D * sizeof(T) <= 65536

work:
  kind: row_block
  direction: in
  tile: [ROWS]
  fields: {rows: {min: 1, max: ROWS}}

roles:
  compute:
    warps: ROWS
    registers: {min: 40}
    body:
      - wait x
      - read x
      - acquire y
      - repeat: rows
        body: [write y]
      - release x
      - commit y

ports:
  factor: {space: scalar, type: f32, role: compute}
  x:
    space: ring
    direction: in
    role: compute
    arrivals: ROWS
    item: {tile: {dtype: T, shape: [ROWS, D]}}
  y:
    space: ring
    direction: out
    role: compute
    arrivals: ROWS
    item: {tile: {dtype: T, shape: [ROWS, D]}}
"""
