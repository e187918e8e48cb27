"""Requested megakernels: names, parameters and digests, enough to decide what is stale.

The bound contracts themselves are needed only when an action runs.  The requests are cached from
run to run, so that a null build reads no contract.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pipelink_rules.actions.build_key import Signatures
from pipelink_rules.actions.prebuilt import Prebuilt
from pipelink_rules.model.program import MegakernelSpec
from pipelink_rules.model.variant import Variant


@dataclass(frozen=True)
class RequestedVariant:
    """A variant by its name and its digests."""

    component: str
    digest: str
    arguments: tuple[tuple[str, int | str], ...]
    flags: tuple[str, ...]
    text: str  # digest of all of it, places and prose included
    code: str  # digest of what decides the machine code

    @property
    def name(self) -> str:
        """As of the variant: `<component>_<digest>`."""
        return f"{self.component}_{self.digest}"


@dataclass(frozen=True)
class RequestedInstance:
    """An instance and the variant it is of."""

    name: str
    label: str
    variant: RequestedVariant
    sidecars: tuple[tuple[str, str], ...] = ()  # (target, sidecar) where it is prebuilt


@dataclass(frozen=True)
class RequestedMegakernel:
    """A megakernel by its name and its digests; instances in the order of the declaration."""

    name: str
    archs: tuple[str, ...]
    runtime: str
    text: str  # digest of the declaration
    instances: tuple[RequestedInstance, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)


@dataclass(frozen=True)
class Nouns:
    """The same in full."""

    spec: MegakernelSpec
    variants: dict[str, Variant]  # instance -> variant, with the places of its contract
    prebuilt: dict[str, Prebuilt]  # instances without a source


@dataclass(frozen=True)
class CompileRequest:
    """A variant to compile or to import.  Paths are relative to the folder of the build's top."""

    label: str
    variant: Callable[[], Variant]  # in full, when an action runs
    sources: tuple[str, ...]
    includes: tuple[str, ...]
    copts: tuple[str, ...]  # without code-generation flags: those are the variant's
    defines: tuple[str, ...]
    arch: str
    out_dir: str
    declared: tuple[str, ...]  # headers of the component and of what it depends on
    strict: bool = False  # warnings and inconclusive audits are errors


def requests_of(nouns: Nouns, signatures: Signatures) -> RequestedMegakernel:
    """Return the names and digests of a resolved megakernel."""
    instances = []
    for item in nouns.spec.instances:
        variant = nouns.variants[item.name]
        prebuilt = nouns.prebuilt.get(item.name)
        known = RequestedVariant(
            component=variant.contract.component,
            digest=variant.digest,
            arguments=variant.arguments,
            flags=variant.flags,
            text=signatures.of(variant),
            code=signatures.of(variant, code=True),
        )
        sidecars = prebuilt.sidecars if prebuilt else ()
        instances.append(RequestedInstance(item.name, item.label, known, sidecars))
    spec, found = nouns.spec, tuple(instances)
    text = signatures.of(spec)
    return RequestedMegakernel(spec.name, spec.archs, spec.runtime, text, found, spec.cluster)
