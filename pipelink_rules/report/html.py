"""A writer of HTML pages: escaped elements, and one style sheet, light and dark.

Equal inputs yield equal pages.  A page is well-formed XML and loads no other file.
"""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

_ALONE = ("meta", "rect", "line", "circle", "path")
LETTER = 6.1  # pixels of a letter of the small type, on average
COLORS = 8  # --c0 .. --c7

STYLE = (
    "\n"
    + Path(__file__).with_name("style.css").read_text("utf-8")
    + "".join(
        f"svg .f{n} {{ fill: var(--c{n}); }} svg .s{n} {{ stroke: var(--c{n}); }}\n"
        for n in range(COLORS)
    )
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
    view = {"viewBox": f"0 0 {_number(width)} {_number(height)}", "width": width, "height": height}
    drawn = element("svg", element("title", text(title)), *parts, **view, role="img")
    return element("div", drawn, class_="picture")


def table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with right-aligned columns of numbers; "" without rows."""
    body = [tuple(row) for row in rows]
    if not body:
        return ""
    numeric = [all(map(_numeric, column)) for column in zip(*body, strict=True)]
    flush = ["number" if each else None for each in numeric]

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
