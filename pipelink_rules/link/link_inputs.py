"""Checks of link inputs: digests, toolkit versions, architectures, flags and weak symbols."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelink_rules.contract.sidecar import load_sidecar
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label
from pipelink_rules.files.atomic import sha256
from pipelink_rules.files.codec import read_json
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import BuildRecord, Variant, WeakSymbol, WeakTable
from pipelink_rules.toolkit.fatbin import FatbinImage, images_of
from pipelink_rules.toolkit.toolkit import Toolkit, version_tuple
from pipelink_rules.toolkit.weak_symbols import SymbolConflict, demangle, find_clashes, weak_file

_FLAG_VALUES = {"0": "false", "1": "true"}  # as nvcc spells them


@dataclass(frozen=True)
class LinkObject:
    """One input of a link with its records."""

    path: str
    owner: str  # its name in messages: the component, or the file
    images: tuple[FatbinImage, ...]
    variant: Variant | None
    build: BuildRecord | None
    weak: tuple[WeakSymbol, ...]

    @property
    def span(self) -> Span:
        """The sidecar, else the object itself."""
        file = self.variant.contract.file if self.variant else ""
        return Span(file or self.path)


def read_objects(
    objects: Sequence[str | Path], sidecars: Iterable[str | Path], toolkit: Toolkit
) -> tuple[LinkObject, ...]:
    """Return the inputs of a link, sorted by path.

    A sidecar belongs to the adjacent object with the same stem.  Raises the errors of reading a
    sidecar or an object.
    """
    by_object = {
        str(sidecar).removesuffix(".contract.yaml") + ".fatbin": sidecar
        for sidecar in map(Path, sidecars)
    }
    found = []
    for path in sorted({str(item) for item in objects}):
        sidecar = by_object.get(path)
        variant, build = load_sidecar(sidecar) if sidecar else (None, None)
        weak: tuple[WeakSymbol, ...] = ()
        if build:
            weak = build.weak
        elif (file := weak_file(path)).exists():
            weak = read_json(file, WeakTable).symbols
        owner = variant.contract.component if variant else Path(path).name
        found.append(LinkObject(path, owner, images_of(path, toolkit), variant, build, weak))
    return tuple(found)


def check_objects(
    objects: Sequence[LinkObject], arch: str, toolkit: Toolkit
) -> tuple[Diagnostic, ...]:
    """Return all errors of the inputs."""
    return (
        *(item for one in objects for item in _check_digest(one)),
        *(item for one in objects for item in _check_toolchain(one, toolkit)),
        *(item for one in objects for item in _check_architecture(one, arch)),
        *_check_flags(objects, arch),
        *shared_names(objects),
    )


def _check_digest(one: LinkObject) -> Iterable[Diagnostic]:
    if one.build is None:
        return
    recorded = dict(one.build.objects).get(Path(one.path).name, "")
    actual = sha256(one.path)
    if recorded != actual:
        yield Diagnostic(
            "PL0904",
            f"{Path(one.path).name} differs from the object in the sidecar of `{one.owner}`",
            (Label(one.span, "this sidecar"),),
            expected=f"sha256 {recorded or '(none recorded)'}",
            found=f"sha256 {actual}",
            at_run_time="undefined: contract and code may differ",
            suggestions=("use object and sidecar of the same build, or rebuild the component",),
            subject=one.path,
        )


def _check_toolchain(one: LinkObject, toolkit: Toolkit) -> Iterable[Diagnostic]:
    if one.build is None:
        return
    built, ours = one.build.toolkit, toolkit.version
    compiler, linker = version_tuple(built), version_tuple(ours)
    suggestions: tuple[str, ...]
    if compiler[0] != linker[0]:
        code, by, found = "PL1203", "a different major version", built
        expected = f"a compiler of CUDA {linker[0]}.x"
        suggestions = ("recompile it with this toolkit",)
    elif compiler[:2] > linker[:2]:
        code, by, found = "PL1202", "a newer toolkit", ours
        expected = f"a linker of CUDA {built} or later"
        suggestions = ("link with the newer toolkit", "or recompile the component")
    else:
        return
    yield Diagnostic(
        code,
        f"`{one.owner}` was compiled by CUDA {built}, but the linker is from CUDA {ours}",
        (Label(one.span, f"compiled by {by}"),),
        expected=expected,
        found=f"CUDA {found}",
        suggestions=suggestions,
        subject=one.owner,
    )


def _check_architecture(one: LinkObject, arch: str) -> Iterable[Diagnostic]:
    code = [image for image in one.images if image.kind == "nvvm"]
    if any(image.arch == arch for image in code):
        return
    have = sorted({f"{image.arch} ({image.kind})" for image in one.images})
    what = "no link-time code" if not code else f"no link-time code for {arch}"
    yield Diagnostic(
        "PL1207",
        f"`{one.owner}` has {what}",
        (Label(one.span, f"the object has {', '.join(have)}"),),
        expected=f"{arch} (nvvm)",
        found=", ".join(have),
        at_run_time="the linker drops the object, or links its machine code without inlining it",
        suggestions=(f"build it with archs=[..., {arch!r}]",),
        subject=one.owner,
    )


def _check_flags(objects: Sequence[LinkObject], arch: str) -> Iterable[Diagnostic]:
    values: dict[str, dict[str, list[LinkObject]]] = {}
    for one in objects:
        for image in one.images:
            if image.kind == "nvvm" and image.arch == arch:
                for flag, value in image.flags:
                    values.setdefault(flag, {}).setdefault(value, []).append(one)
    for flag, by_value in sorted(values.items()):
        if len(by_value) < 2:
            continue
        name = flag.replace("_", "-")
        groups = {
            f"-{name}={_FLAG_VALUES.get(value, value)}": owners
            for value, owners in sorted(by_value.items(), key=lambda item: (len(item[1]), item[0]))
        }
        yield Diagnostic(
            "PL1208",
            f"objects of one link were compiled with different values of -{name}",
            tuple(Label(owners[0].span, flag) for flag, owners in groups.items()),
            expected=f"one value of -{name} in all objects",
            found="; ".join(
                f"{flag}: {', '.join(sorted({one.owner for one in owners}))}"
                for flag, owners in groups.items()
            ),
            at_run_time="nvJitLink applies the value of the first object to all of them",
            suggestions=(f"set the same -{name}= in copts= of every component",),
            subject=name,
        )


def shared_names(objects: Sequence[LinkObject]) -> Iterable[Diagnostic]:
    """Yield PL0903 for each pair of objects that define a weak symbol differently."""
    owners = {one.path: one for one in objects}
    clashes = find_clashes({one.path: one.weak for one in objects if one.weak})
    pairs: dict[tuple[str, ...], list[SymbolConflict]] = {}
    for clash in clashes:
        pairs.setdefault(tuple(group[0] for group in clash.owners[:2]), []).append(clash)
    for ends, found in pairs.items():
        spelled = demangle([clash.name for clash in found])
        names = [f"`{spelled[clash.name]}`" for clash in found]
        one, two = (owners[path] for path in ends)
        first, second = (item.variant.name if item.variant else item.owner for item in (one, two))
        yield Diagnostic(
            "PL0903",
            f"`{first}` and `{second}` define {names[0]} differently"
            + (f", and {len(names) - 1} more" if len(names) > 1 else ""),
            (
                Label(one.span, f"`{first}` has one body"),
                Label(two.span, f"`{second}` has one body"),
            ),
            expected="one body for each weak symbol",
            found=", ".join(names[:8]) + (", ..." if len(names) > 8 else ""),
            at_run_time=f"`{second}` runs the code of `{first}`",
            suggestions=(
                "put the component's helpers into namespace PL_COMPONENT { ... }",
                "or use one version of shared headers, without macros that change them",
                *_other_compiler(one, two),
            ),
            subject=f"{one.owner} {two.owner}",
        )


def _other_compiler(one: LinkObject, two: LinkObject) -> tuple[str, ...]:
    if one.build and two.build and one.build.fingerprint != two.build.fingerprint:
        versions = f"({one.build.toolkit} and {two.build.toolkit})"
        return (f"or compile both with one toolkit: theirs differ {versions}",)
    return ()
