"""Edit generated files and objects that no build would produce, and run the later stages on them.

Nothing changes in the build directory: the edited files and their link are in a separate one.  The
objects are linked without their sidecars, which would reveal the edit.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.validation.refused_cases import SUFFIXES, Case, edited, files_of
from pipelink_rules.files.codec import decode, encode, read_json, write_json
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program, runtime_build

if TYPE_CHECKING:
    from pipelink_rules.toolkit.toolkit import Toolkit


def replaced(placement: Placement, changes: Mapping[str, Any]) -> Placement:
    """Return the placement with other numbers; in `offsets` and `barriers` named ones change."""
    data = encode(placement)
    for key, value in changes.items():
        if isinstance(value, Mapping):
            value = [[name, value.get(name, old)] for name, old in data[key]]
        data[key] = value
    return decode(Placement, data)


def faults_of(program: Path, placement: Placement) -> list[str]:
    """Return the errors of the verifier for a placement."""
    from pipelink_rules.place.problem import placement_problem
    from pipelink_rules.place.verify import verify

    return verify(placement_problem(read_json(program, Program)), placement)


def with_boxes(manifest: Manifest, boxes: Mapping[str, list[int]]) -> Manifest:
    """Return the manifest with other boxes of tensor maps."""
    parameters = tuple(
        replace(item, box=tuple(boxes.get(item.name, item.box))) for item in manifest.parameters
    )
    return replace(manifest, parameters=parameters)


class Later:
    """The edited files of one case, from a finished build of its megakernel."""

    def __init__(self, case: Case, folder: Path, out: Path, top: Path):
        self.case, self.folder, self.out, self.top = case, folder, out, top
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        self.program = read_json(self._built("program.json"), Program)
        before = read_json(self._built("placement.json"), Placement)
        self.placement = replaced(before, case.placement)
        self.objects = [*self._objects(), self._glue()]

    @property
    def toolkit(self) -> Toolkit:
        """Return the toolkit of the copy."""
        from pipelink_rules.toolkit.find import find_toolkit

        return find_toolkit(self.top / "build")

    def link(self, runtime: str) -> Path:
        """Link with a runtime; return the folder with cubin and manifest."""
        from pipelink_rules.actions.link_actions import link_image, write_reports

        name, to = self.case.megakernel, self.out / runtime
        to.mkdir()
        placement = write_json(to / f"{name}.placement.json", self.placement)
        stem, program = str(to / name), self._built("program.json")
        allow = tuple((code, "to see what the GPU makes of it") for code in self.case.also)
        link_image(
            objects=[*map(str, self.objects), str(self._runtime(runtime))],
            sidecars=[],
            program=str(program),
            placement=str(placement),
            backend="nvlink",
            stem=stem,
            times=f"{stem}.times.json",
            toolkit=self.toolkit,
            spec=replace(self.program.spec, allow=(*self.program.spec.allow, *allow)),
        )
        for file in (program, self._built("check.json")):
            shutil.copyfile(file, to / file.name)
        write_reports(stem, runtime)
        manifest = read_json(f"{stem}.manifest.json", Manifest)
        write_json(f"{stem}.manifest.json", with_boxes(manifest, self.case.boxes))
        return to

    def _built(self, suffix: str) -> Path:
        return self.folder / f"{self.case.megakernel}.{suffix}"

    def _objects(self) -> list[Path]:
        """Return the object of every variant: of the build, or of the edited source."""
        texts = files_of(self.case) if self.case.inconclusive else {}
        found = []
        for name, variant in {i.variant.name: i.variant for i in self.program.instances}.items():
            component = variant.contract.component
            built = self.folder.parents[1] / "variants" / name
            source = next((n for n in texts if n.endswith(f"/{component}{SUFFIXES['source']}")), "")
            if not source:
                found.append(built / f"{component}.fatbin")
                continue
            changed = self.out / f"{component}.cu"
            changed.write_text(texts[source], encoding="utf-8")
            found.append(self._compiled(changed, built))
        return found

    def _glue(self) -> Path:
        from pipelink_rules.glue.emit import emit_glue

        text = edited(
            emit_glue(self.program, self.placement), self.case.glue, f"{self.case.name}, glue"
        )
        glue = self.out / f"{self.case.megakernel}.glue.cu"
        glue.write_text(text, encoding="utf-8")
        return self._compiled(glue, self.folder.parents[1] / "variants")

    def _runtime(self, name: str) -> Path:
        build = runtime_build(name, self.program.cluster)
        return self._compiled(self.top / f"components/runtime/{build}.cu", None)

    def _compiled(self, source: Path, include: Path | None) -> Path:
        from pipelink_rules.compile.object import compile_object

        made = self.out / f"{source.stem}.fatbin"
        includes = [self.top / "components/include", *([include] if include else [])]
        variants = [item.variant for item in self.program.instances]
        compile_object(
            str(source),
            str(made),
            self.program.target,
            self.toolkit,
            includes=[str(path) for path in includes],
            flags=variants[0].flags,
            name=f"`{source.name}`",
        )
        return made
