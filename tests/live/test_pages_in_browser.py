"""The page of every megakernel has a readable layout, as measured in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest
from checkout import Checkout
from shipped_declarations import pairs

pytestmark = pytest.mark.live
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)
BROWSED = pytest.mark.skipif(
    BROWSER is None, reason=f"no browser: none of {', '.join(BROWSERS)} on PATH"
)
WIDTHS = (390, 1280)  # CSS pixels: a telephone, a window

# Runs in the page: what is outside of its picture, what overlaps, what has too little contrast.
MEASURE = """
const found = {outside: [], overlaps: [], faint: []};
const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1
  && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
const light = (color) => {
  const [r, g, b] = color.match(/[0-9.]+/g).map(Number).map((part) => {
    const c = part / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
for (const svg of document.querySelectorAll('svg')) {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].filter((t) => t.textContent.trim());
  const boxes = texts.map((t) => t.getBoundingClientRect());
  texts.forEach((t, i) => {
    if (!inside(boxes[i], frame)) found.outside.push(t.textContent);
    for (let j = 0; j < i; ++j)
      if (meet(boxes[i], boxes[j]))
        found.overlaps.push(texts[j].textContent + ' / ' + t.textContent);
  });
}
const paper = light(getComputedStyle(document.querySelector('section')).backgroundColor);
for (const item of document.querySelectorAll('h1, h2, p, td, th, .fact b, .fact span')) {
  const ink = light(getComputedStyle(item).color);
  const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  if (contrast < 4.5) found.faint.push(item.textContent.slice(0, 40) + ' ' + contrast.toFixed(2));
}
found.paper = paper;
found.width = document.documentElement.scrollWidth;
found.window = document.documentElement.clientWidth;
found.pictures = document.querySelectorAll('svg').length;
document.body.dataset.found = JSON.stringify(found);
"""


def measured(page: Path, width: int, folder: Path, *options: str) -> dict[str, object]:
    """Return what the script found in a copy of the page that allows scripts."""
    text = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", page.read_text())
    # A frame has the requested width; windows of a headless browser have a minimum width.
    copy = folder / "page.html"
    copy.write_text(text.replace("</body>", f"<script>{MEASURE}</script></body>"))
    frame = folder / "frame.html"
    frame.write_text(
        f'<iframe id="f" src="page.html" style="width: {width}px; height: 900px; border: 0">'
        "</iframe><script>onload = () => { document.body.dataset.found ="
        " document.getElementById('f').contentDocument.body.dataset.found; };</script>"
    )
    assert BROWSER
    done = subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--allow-file-access-from-files", f"--user-data-dir={folder / 'profile'}"),
            *("--window-size=1400,1000", "--virtual-time-budget=3000", *options),
            *("--dump-dom", frame.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    answer = re.search(r'data-found="([^"]*)"', done.stdout)
    assert answer, done.stderr[-2000:]
    result: dict[str, object] = json.loads(unescape(answer[1]))
    return result


@BROWSED
@pytest.mark.parametrize(("name", "arch"), pairs())
def test_page_is_laid_out(built: Checkout, tmp_path: Path, name: str, arch: str) -> None:
    page = built.megakernel(name, arch) / f"{name}.html"
    for width in WIDTHS:
        found = measured(page, width, tmp_path)
        assert found["pictures"]
        assert not found["outside"], "text outside of its picture"
        assert not found["overlaps"], "texts that cover each other"
        assert not found["faint"], "text that is hard to read"
        assert found["width"] <= found["window"], "the page scrolls sideways"


@BROWSED
def test_dark_colors_are_readable(built: Checkout, tmp_path: Path) -> None:
    name, arch = pairs()[0]
    page = built.megakernel(name, arch) / f"{name}.html"
    found = measured(page, WIDTHS[1], tmp_path, "--blink-settings=preferredColorScheme=0")
    assert float(str(found["paper"])) < 0.1, "the browser has not chosen the dark colours"
    assert not found["faint"]


@BROWSED
def test_measurement_finds_layout_errors(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        '<body style="color: #888"><section style="background: #777; color: #888"><p>faint</p>'
        '</section><svg width="100" height="40"><text x="10" y="20">one</text>'
        '<text x="12" y="21">two</text><text x="90" y="20">outside</text></svg>'
        '<div style="width: 2000px">wide</div></body>'
    )
    found = measured(page, WIDTHS[0], tmp_path)
    assert found["outside"] == ["outside"]
    assert found["overlaps"] == ["one / two"]
    assert found["faint"]
    assert int(str(found["width"])) > int(str(found["window"]))
