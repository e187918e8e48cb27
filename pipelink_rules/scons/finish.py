"""After all declarations: nodes, aliases, help text, and the summary at the end of the build."""

import json
import os
import sys
from functools import partial
from typing import Any, Unpack

import SCons.Errors
import SCons.Script

from pipelink_rules.actions import labels, paths
from pipelink_rules.actions.labels import LIBRARY
from pipelink_rules.actions.requests import RequestedInstance
from pipelink_rules.diagnostics.diagnostic import Details, PipelinkError, error
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.files.atomic import write_text
from pipelink_rules.model.program import runtime_build
from pipelink_rules.scons.graph import Graph
from pipelink_rules.scons.megakernel import MegakernelNodes
from pipelink_rules.scons.options import help_text
from pipelink_rules.scons.resolve import ResolvedMegakernel, Resolver
from pipelink_rules.scons.session import BUILD, MegakernelRule, RuntimeRule, Session, write_document


def finish(env: Any) -> None:
    """End the SConstruct (`env.PipelinkFinish()`); print the diagnostics of all declarations."""
    session: Session = env["PIPELINK"]
    if session.finished:
        return
    session.finished = True
    env.Help(help_text(_summaries(session)), append=True, local_only=True)
    if SCons.Script.GetOption("help"):
        return
    try:
        _Finish(env, session).run()
    except PipelinkError as problem:
        session.findings += problem.diagnostics
    _stop(session)


def _summaries(session: Session) -> dict[str, str]:
    """Return name -> the line of `scons -h`."""
    found = {}
    for name, rule in session.megakernels.items():
        by_name = "" if _by_default(rule) else " (built by name only)"
        found[name] = str(dict(rule.attributes).get("summary", "")) + by_name
    return found


def _by_default(rule: MegakernelRule) -> bool:
    """Return whether a build without targets includes the megakernel."""
    return bool(dict(rule.attributes).get("default", True))


def _stop(session: Session) -> None:
    if not session.findings:
        return
    session.report(session.findings, "nothing was built")
    # Not UserError: that would name a line of this file, which is not where the mistake is.
    print("scons: *** the declarations have errors", file=sys.stderr)
    sys.exit(2)


class _Finish:
    def __init__(self, env: Any, session: Session):
        self.env, self.session = env, session
        self.resolver = Resolver(env, session)

    def run(self) -> None:
        session = self.session
        resolved = {}
        for name, rule in sorted(session.megakernels.items()):
            try:
                resolved[name] = self.resolver.resolve(rule)
            except PipelinkError as problem:
                session.findings += problem.diagnostics
        _stop(session)
        cleaning = bool(SCons.Script.GetOption("clean"))
        fingerprint = session.toolkit.fingerprint if resolved and not cleaning else ""
        graph = Graph(self.env, session, self.resolver.component, fingerprint)
        aliases = {name: self._megakernel(graph, item) for name, item in resolved.items()}
        if session.megakernels and not any(aliases.values()) and not session.findings:
            wanted = ",".join(session.options.archs)
            message = f"no megakernel is declared for {wanted}"
            fix = f"add {wanted} to `archs` of a megakernel"
            raise error("PL1312", message, suggestions=(fix,), subject=wanted)
        _stop(session)
        defaults = [
            alias
            for name, found in aliases.items()
            if _by_default(session.megakernels[name])
            for alias in found
        ]
        self.env.Alias("megakernels", [alias for found in aliases.values() for alias in found])
        self.env.Default(defaults or None)
        if not session.quiet:
            write_compile_commands(session, graph, resolved, self.resolver)

    def _megakernel(self, graph: Graph, item: ResolvedMegakernel) -> list[Any]:
        """Return the alias of a megakernel and everything it builds."""
        spec, session = item.requested, self.session
        wanted = [a for a in spec.archs if not session.options.archs or a in session.options.archs]
        name = session.options.runtime or spec.runtime
        runtime = self._runtime(runtime_build(name, spec.cluster))
        results: list[Any] = []
        for arch in wanted:
            try:
                files_of = {
                    one.name: self._variant(graph, item, one, arch) for one in spec.instances
                }
            except PipelinkError as problem:
                session.findings += problem.diagnostics
                continue
            nodes = MegakernelNodes(graph, item, arch, files_of, runtime)
            results += nodes.results
            if _requested(spec.name, arch):
                # The check runs before every compilation, without being an input.
                self.env.Requires([*nodes.variants, *nodes.results], nodes.check)
        if not results:
            return []
        label = str(session.megakernels[spec.name].label)
        self.env.Alias(label, results)
        return list(self.env.Alias(f"megakernels/{spec.name}", results))

    def _variant(
        self, graph: Graph, item: ResolvedMegakernel, instance: RequestedInstance, arch: str
    ) -> paths.VariantFiles:
        name, variant, rule = instance.name, instance.variant, item.rules[instance.name]
        other = graph.folders.get(variant.name, rule.label)
        if other != rule.label:
            raise self._error(
                item,
                name,
                "PL1311",
                f"{rule.label} and {other} produce the same variant {variant.name}",
                expected="components with different names",
                suggestions=("rename one of them in its contract and in its declaration",),
            )
        sidecars = dict(instance.sidecars)
        if sidecars and arch not in sidecars:
            raise self._error(
                item,
                name,
                "PL1310",
                f"{rule.label} has no prebuilt object for {arch}",
                expected=arch,
                found=", ".join(sidecars),
                suggestions=(f"remove {arch} from `archs`, or deliver an object for it",),
            )
        release = self._runtime("release")  # what the probe links, whatever runs
        options = () if sidecars else self.resolver.options(rule).other
        noun = partial(item.variant, name)
        return graph.variant(arch, variant, noun, rule, options, release, sidecars.get(arch, ""))

    def _error(
        self, item: ResolvedMegakernel, name: str, code: str, text: str, **clauses: Unpack[Details]
    ) -> PipelinkError:
        where = item.nouns().spec.where("instances", name)
        place = (where, f"`{name}` of {item.requested.name}")
        return error(code, text, place, subject=f"{item.requested.name}.{name}", **clauses)

    def _runtime(self, name: str) -> RuntimeRule:
        label = self.session.canonical(labels.Label(LIBRARY, "components/runtime", name))
        if label not in self.session.runtimes:
            self.session.library(self.env, label.package)
        if label not in self.session.runtimes:
            known = similar_name_help(name, [one.name for one in self.session.runtimes])
            message = f"unknown device runtime `{name}`"
            raise error("PL1302", message, suggestions=known, subject=name)
        return self.session.runtimes[label]


def _requested(name: str, arch: str) -> bool:
    """Return whether the command line requests this megakernel: only then its check runs first."""
    targets = [str(target).rstrip("/") for target in SCons.Script.COMMAND_LINE_TARGETS]
    if not targets:
        return True
    folder = f"{BUILD}/{arch}/megakernels/{name}"
    aliases = {f"megakernels/{name}", "megakernels", "."}
    return any(
        target in aliases
        or target.endswith(f":{name}")
        or f"{target}/".startswith(f"{folder}/")
        or f"{folder}/".startswith(f"{target}/")
        for target in targets
    )


def document(session: Session) -> None:
    """Write all diagnostics of this build as one document if `diag=` requests it.

    Warnings of compositions that were checked in an earlier run are included.
    """
    if session.options.diag == "text" or session.quiet:
        return
    kept = [name for name in session.actions if name.endswith(".check.json")]
    path = session.build / f"diagnostics.{session.options.diag}"
    write_document(path, session.options.diag, session.reported, sorted(kept))


def table(session: Session) -> None:
    """Print the summary of a full build without failures, one line per megakernel and target."""
    whole = not SCons.Script.COMMAND_LINE_TARGETS and not session.quiet and session.finished
    if not whole or session.findings or SCons.Script.GetBuildFailures():
        return
    from pipelink_rules.actions.link_actions import summary_text

    names = [
        (arch, name)
        for arch in sorted(os.listdir(session.build))
        for name, rule in sorted(session.megakernels.items())
        if _by_default(rule)
        and f"{paths.megakernel_stem(BUILD, arch, name)}.cubin" in session.actions
    ]
    text = summary_text(BUILD, names)
    if text and not SCons.Script.GetOption("silent"):
        sys.stdout.write(text)
        sys.stdout.flush()


def write_compile_commands(
    session: Session, graph: Graph, resolved: dict[str, ResolvedMegakernel], resolver: Resolver
) -> None:
    """Write compile_commands.json: one entry per source, for the first variant that uses it."""
    if not resolved:
        return
    from pipelink_rules.toolkit.command_lines import Unit, fatbin_argv

    entries: dict[str, dict[str, Any]] = {}
    for item in resolved.values():
        for instance in item.requested.instances:
            rule, variant = item.rules[instance.name], instance.variant
            arch = item.requested.archs[0]
            files = paths.variant_files(BUILD, arch, variant.name, variant.component)
            headers = graph.headers(rule.label)
            for name in map(str, rule.srcs):
                if name in entries:
                    continue
                unit = Unit(
                    source=name,
                    arch=arch,
                    includes=(files.folder, *headers.folders),
                    defines=(*headers.defines, *rule.local_defines, "__CUDACC_RDC__"),
                    flags=variant.flags,
                    options=resolver.options(rule).other,
                )
                entries[name] = {
                    "arguments": fatbin_argv(session.toolkit, unit, files.fatbin),
                    "directory": str(session.top),
                    "file": name,
                    "output": files.fatbin,
                }
    text = json.dumps([entries[key] for key in sorted(entries)], indent=1) + "\n"
    path = session.top / "compile_commands.json"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
