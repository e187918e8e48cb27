"""A writer of HTML pages: escaped elements, and one style sheet, light and dark.

Equal inputs yield equal pages.  A page is well-formed XML and loads no other file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_ALONE = ("meta", "rect", "line", "circle", "path")
LETTER = 6.1  # pixels of a letter of the small type, on average


COLORS = 8  # --c0 .. --c7

STYLE = """
:root { color-scheme: light dark; --paper: #fbfbfa; --card: #ffffff; --ink: #1d2125;
  --soft: #626c76; --line: #dfe3e6; --free: #eef0f1; --warn: #a33b12; --warn-paper: #fdeee7;
  --c0: #4c78c8; --c1: #d9822b; --c2: #4f9d69; --c3: #9467bd; --c4: #c8574f; --c5: #3a9aa8;
  --c6: #b08a1e; --c7: #c06a9e; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15181b; --card: #1d2125; --ink: #e6e9eb; --soft: #98a2ab; --line: #343b41;
    --free: #272c31; --warn: #ffb08f; --warn-paper: #3a2118;
    --c0: #6f98e0; --c1: #e59a4f; --c2: #6bb886; --c3: #ad86d3; --c4: #de7a72; --c5: #59b3c0;
    --c6: #cfa93c; --c7: #d488b5; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1290px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 26px; margin: 0; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 0 0 12px; }
p { margin: 6px 0 0; color: var(--soft); }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, monospace; font-size: 12.5px; }
.chip { display: inline-block; margin: 0 6px 0 0; padding: 1px 9px; border-radius: 10px;
  border: 1px solid var(--line); color: var(--soft); font-size: 12px; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px;
  margin: 20px 0; }
.fact { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 10px 14px; }
.fact b { display: block; font-size: 19px; font-weight: 600; font-variant-numeric: tabular-nums; }
.fact span { color: var(--soft); font-size: 12px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 18px; margin: 14px 0; }
.forced { background: var(--warn-paper); border-color: var(--warn); color: var(--warn); }
.forced p { color: inherit; }
.picture, .wide { overflow-x: auto; }
svg { display: block; max-width: none; }
svg text { fill: var(--ink); font-size: 11px;
  font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
svg .soft { fill: var(--soft); }
svg .strong { font-weight: 600; font-size: 12.5px; }
svg .on { fill: #ffffff; font-weight: 600; }
svg .middle { text-anchor: middle; }
svg .end { text-anchor: end; }
svg .free { fill: var(--free); }
svg .port { fill: var(--soft); }
svg .halo { paint-order: stroke; stroke: var(--free); stroke-width: 4px; }
svg .card { fill: var(--card); stroke: var(--line); }
svg .lane { fill: var(--free); stroke: var(--line); }
svg .rule { stroke: var(--line); }
svg .cut { stroke: var(--card); stroke-width: 1.5; }
svg .mark { stroke: var(--ink); stroke-width: 2; }
svg .edge { fill: none; stroke-width: 2; }
svg .dashed { stroke-dasharray: 5 4; }
svg .pill { fill: var(--card); stroke-width: 1.2; }
table { border-collapse: collapse; width: 100%; font-size: 12.5px; }
th { text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: 4px 20px 4px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
tbody tr:last-child td { border-bottom: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td:first-child { font-weight: 500; }
""" + "".join(
    f"svg .f{n} {{ fill: var(--c{n}); }} svg .s{n} {{ stroke: var(--c{n}); }}\n"
    for n in range(COLORS)
)


def element(tag: str, *children: str, **attributes: object) -> str:
    """Return `<tag a="b">children</tag>`; children are markup, attributes are text.

    `class_` is `class`, and `_` in a name is `-`.  An attribute that is None is left out.
    """
    words = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = "".join(children)
    alone = not inner and tag in _ALONE  # HTML reads `<td/>` as an open `<td>`
    return f"<{tag}{words}/>" if alone else f"<{tag}{words}>{inner}</{tag}>"


def text(value: object) -> str:
    """Any value as markup."""
    return escape(str(value), quote=False)


def rectangle(x: float, y: float, width: float, height: float, tip: str, **more: object) -> str:
    """Return a rectangle of a picture, with its tooltip."""
    title = element("title", text(tip)) if tip else ""
    return element("rect", title, x=x, y=y, width=width, height=height, **more)


def label(x: float, y: float, value: str, room: float | None = None, **more: object) -> str:
    """Return text of a picture, shortened to `room` pixels, with the full text as tooltip."""
    shown, title = value, ""
    if room is not None and len(value) * LETTER > room:
        shown = value[: max(1, int(room / LETTER) - 1)] + "…"
        title = element("title", text(value))
    return element("text", title, text(shown), x=x, y=y, **more)


def picture(width: float, height: float, title: str, *parts: str) -> str:
    """Return an inline picture, which scrolls if the page is narrower."""
    drawn = element(
        "svg",
        element("title", text(title)),
        *parts,
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        width=width,
        height=height,
        role="img",
    )
    return element("div", drawn, class_="picture")


def table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with right-aligned columns of numbers; "" without rows."""
    body = [tuple(row) for row in rows]
    if not body:
        return ""
    flush = [
        "number" if all(_numeric(row[at]) for row in body) else None for at in range(len(heading))
    ]

    def line(tag: str, cells: Sequence[object]) -> str:
        found = zip(cells, flush, strict=True)
        return element("tr", *(element(tag, text(cell), class_=kind) for cell, kind in found))

    inner = element("thead", line("th", heading))
    inner += element("tbody", *(line("td", row) for row in body))
    return element("div", element("table", inner), class_="wide")


def _numeric(cell: object) -> bool:
    return isinstance(cell, int) or str(cell).replace(",", "").isdigit()


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)
