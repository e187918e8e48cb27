"""Copies the diagnostics of the golden cases into the error pages: python docs/update_examples.py.

The example of a page is one diagnostic of one golden case of its code.  A page whose example is no
longer shown by a case gets the most similar diagnostic; read the change before you commit it.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"```text\n(.*?)\n```", re.DOTALL)


def diagnostics(code: str) -> Iterator[str]:
    """Every diagnostic of a code in the golden cases, alone and with those beside it."""
    for path in sorted(ROOT.glob(f"tests/golden/*/{code}_*/expect.txt")):
        text = path.read_text(encoding="utf-8").replace(f"{path.parent.relative_to(ROOT)}/", "")
        yield re.split(r"\n\n(?:error|warning): \d", text)[0]
        for part in re.split(r"\n\n(?=\w+\[PL)|\n\nerror: \d|\n\nwarning: \d", text):
            if re.match(rf"\w+\[{code}\]", part):
                yield part.rstrip("\n")


def updated(page: str, code: str) -> str:
    """The page with examples that golden cases show."""
    known = list(diagnostics(code))

    def replace(matched: re.Match[str]) -> str:
        example = matched.group(1)
        if not known or not re.match(r"\w+\[PL", example) or any(example in one for one in known):
            return matched.group(0)
        best = max(known, key=lambda one: difflib.SequenceMatcher(None, example, one).ratio())
        return f"```text\n{best}\n```"

    return BLOCK.sub(replace, page)


def main() -> int:
    changed = 0
    for path in sorted(ROOT.glob("docs/errors/PL*.md")):
        before = path.read_text(encoding="utf-8")
        after = updated(before, path.stem)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(ROOT))
            changed += 1
    print(f"{changed} pages changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
