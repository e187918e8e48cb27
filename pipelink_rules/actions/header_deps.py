"""The headers of a source, compared with the declared ones.

Before the compilation these are the declared headers that `#include` lines reach, after it those
in the compiler's dependency file.  A header that only the dependency file lists is an error, so
that no build depends on a file that it does not track.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import DiagnosticSink, error
from pipelink_rules.model.source_span import Span

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">\n]+)[">]', re.M)
# Folders of the host compiler and the C library; the toolkit's own are added by the caller.
SYSTEM_FOLDERS = ("/usr/include/", "/usr/lib/gcc/", "/usr/lib/gcc-cross/", "/usr/local/lib/gcc/")
_TEMPORARY = re.compile(r"(^|/)tmpxft_|\.staged\.")  # nvcc's own temporaries; ours


def includes_of(text: str) -> tuple[tuple[str, bool], ...]:
    """(name, quoted) of each `#include` line, also of those in `#if 0`; macros are not expanded."""
    return tuple((match[2].strip(), match[1] == '"') for match in _INCLUDE.finditer(text))


def resolve(
    name: str, quoted: bool, folder: str, roots: Sequence[str], declared: Mapping[str, object]
) -> str | None:
    """Return the declared header that an include line names, or None.

    folder: of the including file.  roots: the -I folders, in order.
    """
    for root in (folder, *roots) if quoted else roots:
        path = os.path.normpath(os.path.join(root, name))
        if path in declared:
            return path
    return None


def read_depfile(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The prerequisites of a make rule as nvcc -MMD writes it; names of temporaries left out."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    text = text.replace("\0", "\ufffd").replace("\\\n", " ")
    found: list[str] = []
    for line in text.splitlines():
        target, colon, rest = line.partition(": ")
        names = rest if colon else ("" if line.rstrip().endswith(":") else target)
        # A space inside a name is written "\ ".
        words = re.findall(r"(?:\\ |[^\s\\]|\\(?! ))+", names)
        found += [word.replace("\\ ", " ") for word in words]
    return tuple(dict.fromkeys(name for name in found if not _TEMPORARY.search(name)))


def undeclared(
    used: Iterable[str], allowed: Iterable[str], system: Iterable[str]
) -> tuple[str, ...]:
    """The files of a compiler's list that are neither allowed nor below a system folder, sorted."""
    known = set(map(os.path.realpath, allowed))
    tops = [os.path.realpath(folder) for folder in (*SYSTEM_FOLDERS, *system) if folder]
    folders = tuple(top.rstrip("/") + "/" for top in tops)
    names = {os.path.realpath(name): name for name in used}
    hidden = [path for path in names if path not in known and not path.startswith(folders)]
    return tuple(sorted(names[path] for path in hidden))


def require_declared(
    label: str,
    source: str,
    depfile: str | os.PathLike[str],
    allowed: Iterable[str],
    system: Iterable[str],
    reachable: Iterable[str] = (),
) -> None:
    """Raise PL1303 for every undeclared header, PL1313 if there is no dependency file.

    reachable: headers of `deps=`, which are declared, but which no `#include` line reaches.
    """
    if not Path(depfile).is_file():
        raise error(
            "PL1313",
            f"the compiler wrote no dependency file for {source}",
            Span(source),
            expected="a dependency file from nvcc -MMD",
            found="none",
            suggestions=(
                "set PIPELINK_CUDA to a toolkit whose bin/nvcc is the compiler, not a wrapper",
            ),
            subject=label,
        )
    hidden = set(map(os.path.realpath, reachable))
    through_macro = "no `#include` line names it: it is reached through a macro or an option"
    sink = DiagnosticSink()
    for name in undeclared(read_depfile(depfile), allowed, system):
        sink.add(
            "PL1303",
            f"{label} includes `{name}` without declaring it",
            (Span(source), "included from here"),
            expected="every header in `hdrs=` of the component or of one of its `deps=`",
            found=f"`{name}` in the dependency file of the compiler",
            notes=(through_macro,) if os.path.realpath(name) in hidden else (),
            suggestions=(f'add "{os.path.basename(name)}" to `hdrs=` of {label}',),
            subject=f"{label} {name}",
        )
    sink.raise_if_any()
