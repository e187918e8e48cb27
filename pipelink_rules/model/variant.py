"""A contract bound to its parameters, the measurements of its object, and the build record."""

from dataclasses import dataclass, field
from typing import ClassVar

from pipelink_rules.model.contract import Contract


@dataclass(frozen=True)
class Measured:
    """Exact measurements of the register probe for one role; the interface rounds them up to 8."""

    registers: int  # smallest setmaxnreg value without spills
    entry: int  # smallest entry register count that compiles
    stack_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class Variant:
    """A contract with its parameters and code-generation flags bound: one LTO object."""

    FORMATS: ClassVar[tuple[str, ...]] = ("interface",)

    contract: Contract  # every expression with the parameters substituted
    arguments: tuple[tuple[str, int | str], ...]  # parameter -> value, sorted
    flags: tuple[str, ...] = ()  # code-generation flags (ftz, fmad, ...), sorted
    digest: str = ""  # 12 hex digits over the generated header, flags and ABI version
    measured: tuple[tuple[str, Measured], ...] = ()  # role -> probe result; empty before the probe
    prebuilt: str = ""  # folder of the prebuilt files; empty where there is a source

    @property
    def name(self) -> str:
        """Folder and namespace stem: `<component>_<digest>`."""
        return f"{self.contract.component}_{self.digest}"

    def symbol(self, role: str) -> str:
        """The linker symbol of a role's entry."""
        return f"pl_{self.contract.component}_{role}_{self.digest}"


@dataclass(frozen=True)
class WeakSymbol:
    """A weak definition in an object: two objects may share it only with the same body."""

    name: str
    kind: str  # "func" or "data"
    body: str  # sha256 of the normalized body


@dataclass(frozen=True)
class WeakTable:
    """The weak definitions of an object without a sidecar; `<unit>.weak.json` is its file."""

    FORMATS: ClassVar[tuple[str, ...]] = ("weak",)

    symbols: tuple[WeakSymbol, ...]


PROVED, TESTED, INCONCLUSIVE = "proved", "tested", "inconclusive"


@dataclass(frozen=True)
class RoleVerdict:
    """What the audit says of a role's code: proved, tested or inconclusive; why not proved."""

    component: str
    role: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class BuildRecord:
    """The `build:` half of a sidecar: how the object was made; never read by check or place."""

    toolkit: str
    fingerprint: str
    command: tuple[str, ...] = ()
    objects: tuple[tuple[str, str], ...] = ()  # file name -> sha256
    probe: tuple[tuple[str, Measured], ...] = ()
    weak: tuple[WeakSymbol, ...] = ()
    codegen: tuple[tuple[str, str], ...] = ()  # ftz, prec_div, ... as the compiler reports them
    verdicts: tuple[RoleVerdict, ...] = ()  # of the audit, role by role
    extra: tuple[tuple[str, str], ...] = field(default_factory=tuple)
