"""Where is a rule called, and what do its values mean?  One call of a rule in an SConscript."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import SCons.Node.FS
import SCons.Util

from pipelink_rules.actions import labels
from pipelink_rules.actions.labels import LIBRARY
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.diagnostics.suggest import similar_name_help
from pipelink_rules.files.installed_files import shipped_root
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS
from pipelink_rules.program.declaration_locations import locate
from pipelink_rules.scons.session import ComponentRule, Declared, Session

# A call is placed at the first frame outside of these packages.
_OWN = str(Path(__file__).resolve().parent.parent)
_ENGINE = str(Path(SCons.Util.__file__ or "").resolve().parent.parent)
_ATTRIBUTES = (
    "name",
    "contract",
    "srcs",
    "hdrs",
    "deps",
    "includes",
    "copts",
    "defines",
    "local_defines",
    "archs",
    "dir",
    "artefacts",
)


@cache
def _text(file: str) -> str:
    path = Path(file)
    return path.read_text(encoding="utf-8") if path.is_file() else ""


class RuleCall:
    """One call of a rule: where it stands, and how its values are read."""

    def __init__(self, env: Any, rule: str, name: Any, others: Mapping[str, Any]):
        self.env = env
        self.session: Session = env["PIPELINK"]
        self.rule = rule
        self.span, self.text = self._here()
        folder = Path(env.Dir(".").srcnode().abspath)
        repository, package = "", self._relative(folder, self.session.top)
        if package is None:
            repository, package = LIBRARY, self._relative(folder, shipped_root()) or ""
        self.label_of_rule = labels.Label(repository, package, str(name))
        if not isinstance(name, str) or labels.parse_label(f"//x:{name}") is None:
            self.wrong("name", f"`{name}` cannot be part of a label")
        for other in sorted(others):
            self.unknown(other, _ATTRIBUTES)

    @staticmethod
    def _relative(folder: Path, root: Path) -> str | None:
        if not folder.is_relative_to(root):
            return None
        text = folder.relative_to(root).as_posix()
        return "" if text == "." else text

    def _here(self) -> tuple[Span | None, str]:
        """The call in the SConscript, or in the Python file that makes the call for it."""
        frame = sys._getframe(2)
        while frame is not None:
            file = os.path.abspath(frame.f_code.co_filename)
            if not file.startswith((_OWN + os.sep, _ENGINE + os.sep)):
                return Span(self.shown(Path(file)), frame.f_lineno, 1), _text(file)
            frame = frame.f_back  # type: ignore[assignment]
        return None, ""

    def shown(self, path: Path) -> str:
        """A path as the user would type it: relative to the top where it is below it."""
        inside = path.is_relative_to(self.session.top)
        return path.relative_to(self.session.top).as_posix() if inside else str(path)

    def find(self, code: str, attribute: str, message: str, **clauses: Any) -> None:
        """Keeps a finding of this call, at one of its attributes."""
        span = self.span
        if span is not None:
            place = locate(self.text, span.line, attribute)
            span = Span(span.file, *place) if place else span
        places = (Label(span, str(self.label_of_rule)),) if span else ()
        self.session.attempt(PipelinkError(Diagnostic(code, message, places, **clauses)))

    def wrong(self, attribute: str, message: str, **clauses: Any) -> None:
        subject = f"{self.label_of_rule} {attribute}"
        self.find("PL1307", attribute, f"{self.rule}: {message}", subject=subject, **clauses)

    def unknown(self, attribute: str, known: Iterable[str]) -> None:
        self.wrong(
            attribute,
            f"there is no attribute `{attribute}`",
            helps=similar_name_help(attribute, known),
        )

    def twice(self, first: Span | None = None) -> None:
        notes = (f"the first one is at {first}",) if first else ()
        message = f"{self.label_of_rule} is declared twice"
        self.find("PL1301", "name", message, notes=notes, subject=str(self.label_of_rule))

    def strings(self, attribute: str, value: Any) -> tuple[str, ...]:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)) or not all(isinstance(i, str) for i in items):
            self.wrong(attribute, f"`{attribute}` is not a list of strings", found=repr(value)[:80])
            return ()
        return tuple(items)

    def files(self, attribute: str, value: Any) -> tuple[Any, ...]:
        """Nodes, each of them there or built by something."""
        nodes = []
        for item in SCons.Util.flatten([value]):
            if isinstance(item, str):
                nodes.append(self.env.File(item).srcnode())
            elif isinstance(item, SCons.Node.FS.File):
                nodes.append(item)
            else:
                self.wrong(attribute, f"`{attribute}` holds no file", found=repr(item)[:80])
        for node in nodes:
            if attribute != "artefacts" and self._leads_out(node):  # those are delivered
                self.wrong(
                    attribute,
                    f"{self.shown(Path(node.abspath))} lies outside of the package",
                    expected=f"a file in {self.folder('.')} or below",
                    helps=("declare it where it lies, and name that rule in `deps=`",),
                )
            elif not node.has_builder() and not os.path.isfile(node.abspath):
                beside = os.listdir(node.dir.abspath) if os.path.isdir(node.dir.abspath) else []
                self.wrong(
                    attribute,
                    f"there is no file {self.shown(Path(node.abspath))}",
                    helps=similar_name_help(node.name, beside)[:1],
                )
        return tuple(nodes)

    def _leads_out(self, node: Any) -> bool:
        """Neither in the package nor made by the build: nobody would watch or deliver it."""
        place = Path(node.abspath)
        roots = (Path(self.env.Dir(".").srcnode().abspath), self.session.build)
        return not node.has_builder() and not any(place.is_relative_to(root) for root in roots)

    def folder(self, text: str) -> str:
        return self.shown(Path(self.env.Dir(text).srcnode().abspath)) or "."

    def label(self, attribute: str, text: str) -> labels.Label | None:
        found = labels.parse_label(text, self.label_of_rule)
        if found is None:
            self.wrong(attribute, f"`{text}` is no label", expected="//package:name or :name")
            return None
        return self.session.canonical(found)

    def archs(self, value: Any) -> tuple[str, ...]:
        names = self.strings("archs", value)
        for name in names:
            if name not in TARGETS:
                self.wrong(
                    "archs", f"there is no target `{name}`", helps=similar_name_help(name, TARGETS)
                )
        return tuple(name for name in names if name in TARGETS)

    def instances(self, value: Any) -> Any:
        """Labels of this package (`:name`) written out; all else is judged by `make_spec`."""
        if not isinstance(value, Mapping):
            return value
        result = {}
        for key, item in value.items():
            pair = (item, {}) if isinstance(item, str) else item
            if isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str):
                label = labels.parse_label(pair[0], self.label_of_rule)
                if pair[0].startswith(":") and label:
                    pair = (str(label), pair[1])
            result[key] = tuple(pair) if isinstance(pair, list) else pair
        return result

    def component(self, rule: ComponentRule) -> Declared:
        known = self.session.components
        if rule.label in known:
            self.twice(known[rule.label].span)
        else:
            known[rule.label] = rule
        return Declared(str(rule.label), tuple(self.env.Alias(str(rule.label))))
