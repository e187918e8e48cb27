"""Resolve every megakernel: declarations -> specifications and bound variants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelink_rules.actions import labels
from pipelink_rules.actions.build_key import Signatures, key_of, lookup, store, tool_version
from pipelink_rules.actions.labels import LIBRARY
from pipelink_rules.actions.prebuilt import choose, load_prebuilt, with_prebuilt_contracts
from pipelink_rules.actions.requests import Nouns, RequestedMegakernel, requests_of
from pipelink_rules.diagnostics.diagnostic import DiagnosticSink, error
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import MegakernelSpec
from pipelink_rules.model.variant import Variant
from pipelink_rules.scons.session import ComponentRule, MegakernelRule, Session

if TYPE_CHECKING:
    from pipelink_rules.compile.options import Options as CompilerOptions


@dataclass(frozen=True)
class ResolvedMegakernel:
    """A megakernel with every instance bound."""

    requested: RequestedMegakernel
    rules: Mapping[str, ComponentRule]  # instance -> where its code comes from
    declared: MegakernelRule
    nouns: Callable[[], Nouns]  # in full: for a step that runs, or a finding

    def variant(self, instance: str) -> Variant:
        """Return a variant in full."""
        return self.nouns().variants[instance]


class Resolver:
    """Reads contracts once per run, and only those that a megakernel names."""

    def __init__(self, env: Any, session: Session):
        self._env, self._session = env, session
        self.signatures = Signatures()
        self._contracts: dict[labels.Label, Contract] = {}
        self._prebuilt = cache(load_prebuilt)

    def component(self, label: labels.Label) -> ComponentRule | None:
        """Return the rule of a label; label packages of the library are read on first use."""
        label = self._session.canonical(label)
        if label not in self._session.components and label.repository == LIBRARY:
            self._session.library(self._env, label.package)
        return self._session.components.get(label)

    def options(self, rule: ComponentRule) -> CompilerOptions:
        """Return the compiler options of a component, split by code generation."""
        from pipelink_rules.compile.options import classify_options

        return classify_options(rule.copts, rule.span)

    def resolve(self, rule: MegakernelRule) -> ResolvedMegakernel:
        """Return the megakernel with all instances bound; raise its errors."""
        path = self._session.build / ".read" / f"{rule.label.name}.json"
        key = self._key(rule)
        nouns = self._once(rule, key)
        requested = lookup(path, key, RequestedMegakernel) if key else None
        if requested is None:
            requested = requests_of(nouns(), self.signatures)
            if key:
                store(path, key, requested)
        components = {item.name: labels.parse_label(item.label) for item in requested.instances}
        rules = {k: self.component(label) for k, label in components.items() if label}
        return ResolvedMegakernel(requested, {k: v for k, v in rules.items() if v}, rule, nouns)

    def _once(self, rule: MegakernelRule, key: str) -> Callable[[], Nouns]:
        """Return a thread-safe function that binds a megakernel on its first call."""
        guard = threading.Lock()
        kept: list[Nouns] = []

        def nouns() -> Nouns:
            with guard:
                if not kept:
                    found = self._bind(rule)
                    if self._key(rule) != key:  # a contract was saved since the digests were taken
                        raise error(
                            "PL1304",
                            f"a contract of {rule.label} changed during the build",
                            rule.span,
                            suggestions=("run scons again",),
                            subject=str(rule.label),
                        )
                    kept.append(found)
                return kept[0]

        return nouns

    def _key(self, rule: MegakernelRule) -> str:
        """Return a digest of all that binding reads; "" if the declaration is malformed."""
        instances = dict(rule.attributes).get("instances")
        if not isinstance(instances, Mapping):
            return ""
        parts: list[str | bytes] = [tool_version("spec"), repr(rule)]
        for item in instances.values():
            text = item[0] if isinstance(item, (tuple, list)) and item else item
            label = labels.parse_label(text)
            component = self.component(label) if label else None
            if component is None:
                return ""
            files = [component.contract] if component.contract else component.prebuilt
            parts += [str(component.label), repr((component.copts, component.archs))]
            for file in files:
                path = Path(str(file))
                if not path.is_file():
                    return ""
                parts += [str(file), path.read_bytes()]
        return key_of(parts)

    def _bind(self, rule: MegakernelRule) -> Nouns:
        from pipelink_rules.program.infer import bind_instances
        from pipelink_rules.program.spec import parse_declaration

        spec: MegakernelSpec = parse_declaration(
            name=rule.label.name, span=rule.span, text=rule.text, **dict(rule.attributes)
        )
        rules = self._rules(spec)
        found = {k: self._prebuilt(item.prebuilt) for k, item in rules.items() if item.prebuilt}
        contracts = {k: self._contract(item) for k, item in rules.items() if not item.prebuilt}
        flags = {label: self.options(item).flags for label, item in rules.items()}
        spec, chosen = choose(spec, found, contracts, flags)
        bound = dict(bind_instances(*with_prebuilt_contracts(spec, contracts, chosen), flags))
        bound |= {instance: item.variant for instance, item in chosen.items()}
        return Nouns(spec, bound, chosen)

    def _rules(self, spec: MegakernelSpec) -> dict[str, ComponentRule]:
        sink = DiagnosticSink()
        rules = {}
        for item in spec.instances:
            label = labels.parse_label(item.label)
            rule = self.component(label) if label else None
            place = (spec.where("instances", item.name), f"instance `{item.name}`")
            subject = f"{spec.name}.{item.name}"
            if rule is None:
                known = similar_name_help(item.label, map(str, self._session.components))
                message = f"unknown component `{item.label}`"
                sink.add("PL1302", message, place, suggestions=known, subject=subject)
            elif rule.contract is None and not rule.prebuilt:
                sink.add(
                    "PL1308",
                    f"header-only component `{item.label}` cannot be an instance",
                    place,
                    expected="a component with `srcs` and a contract, or a prebuilt one",
                    found="`hdrs` only",
                    suggestions=(
                        f"remove the instance and list `{item.label}` in `deps` of a component",
                    ),
                    subject=subject,
                )
            else:
                rules[item.label] = rule
        sink.raise_if_any()
        return rules

    def _contract(self, rule: ComponentRule) -> Contract:
        if rule.label not in self._contracts:
            from pipelink_rules.contract.load import load_contract

            contract = load_contract(str(rule.contract))
            if contract.component != rule.label.name:
                raise error(
                    "PL1309",
                    f"name of {rule.label} differs from `component` in its contract",
                    contract.span,
                    rule.span,
                    expected=f"component: {rule.label.name}",
                    found=f"component: {contract.component}",
                    suggestions=(f'set name="{contract.component}" in the declaration',),
                    subject=str(rule.label),
                )
            if rule.archs:
                kept = tuple(arch for arch in contract.archs if arch in rule.archs)
                contract = replace(contract, archs=kept)
            self._contracts[rule.label] = contract
        return self._contracts[rule.label]
