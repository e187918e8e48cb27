"""The nodes of one megakernel for one target, from its declaration to manifest and map."""

from dataclasses import dataclass, replace
from typing import Any

from pipelink_rules.actions import paths
from pipelink_rules.model.program import CLUSTER_BUILD
from pipelink_rules.scons.action import Action
from pipelink_rules.scons.graph import Graph, Headers, NodeRequest, Run, joined
from pipelink_rules.scons.resolve import ResolvedMegakernel
from pipelink_rules.scons.session import BUILD, ComponentRule, RuntimeRule


@dataclass(frozen=True)
class MegakernelNodes:
    """The nodes that other rules refer to."""

    check: Any
    variants: tuple[Any, ...]  # objects and probe kernels: they wait for the check
    results: tuple[Any, ...]


def megakernel_nodes(
    graph: Graph,
    resolved: ResolvedMegakernel,
    arch: str,
    files_of: dict[str, paths.VariantFiles],
    runtime: RuntimeRule,
) -> MegakernelNodes:
    """Return the nodes.  files_of: instance -> the files of its variant for this target."""
    return _Builder(graph, resolved, arch, files_of, runtime).nodes()


class _Builder:
    def __init__(
        self,
        graph: Graph,
        resolved: ResolvedMegakernel,
        arch: str,
        files_of: dict[str, paths.VariantFiles],
        runtime: RuntimeRule,
    ):
        self.graph, self.env, self.session = graph, graph.env, graph.session
        self.resolved, self.requested, self.arch = resolved, resolved.requested, arch
        self.files_of, self.runtime = files_of, runtime
        self.files = paths.megakernel_files(arch, resolved.requested.name)
        self.unique = sorted(set(files_of.values()), key=lambda item: item.folder)

    def path(self, suffix: str) -> str:
        return f"{BUILD}/{self.files.file(suffix)}"

    def node(self, path: str) -> Any:
        return self.env.File(f"#{path}")

    def action(self, mnemonic: str, run: Run, memory: int = 0, of: str = "") -> Action:
        return Action(mnemonic, f"{of}{self.requested.name} for {self.arch}", run, memory)

    def targets(self, *suffixes: str) -> list[str]:
        return [self.files.file(suffix) for suffix in suffixes]

    def nodes(self) -> MegakernelNodes:
        check = self._declaration()
        self._pure()
        self._glue_object()
        results = [self.node(self.path("spec.json")), *self._link(), *self._describe()]
        if self.session.options.twins:
            results += self._twins()
        variants = tuple(
            self.node(f"{BUILD}/{file}")
            for item in self.unique
            for file in (item.fatbin, item.probe)
        )
        return MegakernelNodes(check, variants, tuple(results))

    def _declaration(self) -> Any:
        from pipelink_rules.actions.stage_actions import check_program, write_spec

        nouns, arch = self.resolved.nouns, self.arch

        def write(inputs: tuple[str, ...]) -> None:
            write_spec(nouns().spec, self.path("spec.json"))

        def check(inputs: tuple[str, ...]) -> None:
            known = nouns()
            found = check_program(known.spec, known.variants, arch, self.path("check.json"))
            if found:
                self.session.report(found)

        action, targets = self.action("Declare", write), self.targets("spec.json")
        self.graph.add(NodeRequest("spec", action, targets, [], [self.requested.text]))
        action, targets = self.action("Check", check), self.targets("check.json")
        return self.graph.add(NodeRequest("check", action, targets, [], self._key()))[0]

    def _key(self) -> list[str]:
        """Return what stands for the declaration and all variants, places and prose included."""
        variants = [f"{one.name}={one.variant.text}" for one in self.requested.instances]
        return [self.requested.text, *variants, self.arch]

    def _pure(self) -> None:
        from pipelink_rules.actions.stage_actions import collect_program, place_program, write_glue

        nouns, arch, path = self.resolved.nouns, self.arch, self.path
        interfaces = {k: f"{BUILD}/{v.interface}" for k, v in self.files_of.items()}

        def resolve(inputs: tuple[str, ...]) -> None:
            known = nouns()
            sourced = {k: v for k, v in known.variants.items() if k not in known.prebuilt}
            outputs = path("program.json"), path("plan.json")
            collect_program(known.spec, sourced, interfaces, arch, *outputs)

        key = [*self._key(), *(f"{k}:{v}" for k, v in sorted(interfaces.items()))]
        sources = [self.node(f"{BUILD}/{item.interface}") for item in self.unique]
        action, targets = self.action("Collect", resolve), self.targets("program.json", "plan.json")
        self.graph.add(NodeRequest("collect", action, targets, sources, key))

        lock = self._lock_file()

        def place(inputs: tuple[str, ...]) -> None:
            place_program(path("program.json"), path("placement.json"), lock and str(lock))

        sources = [self.node(path("program.json")), *([lock] if lock else [])]
        action, targets = self.action("Place", place), self.targets("placement.json")
        self.graph.add(NodeRequest("place", action, targets, sources, []))

        def glue(inputs: tuple[str, ...]) -> None:
            write_glue(path("plan.json"), path("placement.json"), path("glue.cu"))

        sources = [self.node(path(name)) for name in ("plan.json", "placement.json")]
        action, targets = self.action("Glue", glue), self.targets("glue.cu")
        self.graph.add(NodeRequest("glue", action, targets, sources, []))

    def _lock_file(self) -> Any:
        """Return `<name>.<target>.lock.json` beside the SConscript: a placement to keep."""
        span = self.resolved.declared.span
        folder = self.session.top / span.file if span else self.session.top
        path = folder.parent / f"{self.requested.name}.{self.arch}.lock.json"
        return self.env.File(str(path)) if path.is_file() else None

    def _glue_object(self) -> None:
        from pipelink_rules.actions.compile_actions import ObjectRequest, compile_source

        generated = [self.node(f"{BUILD}/{item.header}") for item in self.unique]
        variants = f"{BUILD}/{paths.variants_folder(self.arch)}"
        headers = joined(self.graph.abi(), Headers((variants,), tuple(generated)))
        request = ObjectRequest(
            label=f"the glue of `{self.requested.name}`",
            source=self.path("glue.cu"),
            includes=headers.folders,
            defines=headers.defines,
            arch=self.arch,
            out=self.path("glue.fatbin"),
            declared=tuple(str(node) for node in headers.nodes),
            flags=self._flags(),
            generated=True,
        )

        def run(inputs: tuple[str, ...]) -> None:
            compile_source(request, self.session.toolkit, inputs)

        key = [self.arch, *request.flags, "", *request.defines]
        key += [self.graph.portable(folder) for folder in request.includes]
        sources = [self.node(self.path("glue.cu")), *generated]
        action = self.action("CudaCompile", run, memory=1 << 30, of="glue of ")
        targets = self.targets("glue.fatbin", "glue.weak.json")
        self.graph.add(NodeRequest("object", action, targets, sources, key, headers, tool=True))

    def _flags(self) -> tuple[str, ...]:
        """Return the code-generation flags, which are equal in all objects of a link."""
        return next((one.variant.flags for one in self.requested.instances), ())

    def _link(self) -> list[Any]:
        from pipelink_rules.actions.link_actions import LinkRequest, link_image

        fatbins = [f"{BUILD}/{item.fatbin}" for item in self.unique]
        sidecars = [f"{BUILD}/{item.sidecar}" for item in self.unique]
        runtime = f"{BUILD}/{self.graph.runtime(self.arch, self.runtime, self._flags())}"
        request = LinkRequest(
            objects=(*fatbins, self.path("glue.fatbin"), runtime),
            sidecars=tuple(sidecars),
            program=self.path("plan.json"),
            placement=self.path("placement.json"),
            arch=self.arch,
            backend=self.session.options.linker,
            cubin=self.path("cubin"),
            audit=self.path("audit.json"),
            times=paths.times_file(BUILD, self.arch, self.requested.name),
        )

        def run(inputs: tuple[str, ...]) -> None:
            link_image(request, self.session.toolkit, self.resolved.nouns().spec)

        weak = [paths.weak_table(name) for name in request.objects[-2:]]
        names = (*request.objects, *sidecars, *weak, request.program, request.placement)
        sources = [self.node(name) for name in names]
        action = self.action("DeviceLink", run, memory=2 << 30)
        targets, key = self.targets("cubin", "audit.json"), [self.arch, request.backend]
        return self.graph.add(NodeRequest("link", action, targets, sources, key, tool=True))

    def _describe(self) -> list[Any]:
        from pipelink_rules.actions.link_actions import ReportRequest, write_reports

        names = ("program.json", "check.json", "placement.json", "audit.json", "cubin")
        runtime = self.runtime.label.name.removesuffix(CLUSTER_BUILD)
        outputs = ("manifest.json", "map.txt", "html")
        program, check, placement, audit, cubin = (self.path(name) for name in names)
        manifest, link_map, page = (self.path(name) for name in outputs)
        request = ReportRequest(
            program=program,
            check=check,
            placement=placement,
            audit=audit,
            cubin=cubin,
            runtime=runtime,
            manifest=manifest,
            map=link_map,
            page=page,
        )

        def run(inputs: tuple[str, ...]) -> None:
            write_reports(request)

        sources = [self.node(self.path(name)) for name in names]
        action, targets = self.action("Describe", run), self.targets(*outputs)
        return self.graph.add(NodeRequest("describe", action, targets, sources, [runtime]))

    def _twins(self) -> list[Any]:
        """Return the nodes of the twins; none if an instance has no source."""
        from pipelink_rules.actions.link_actions import TwinRequest, TwinUnit, build_twins

        if any(one.sidecars for one in self.requested.instances):
            return []
        abi = self.graph.abi()
        parts: list[tuple[str, ComponentRule, Headers]] = []
        nodes = [*self.runtime.srcs, *self.runtime.hdrs, *abi.nodes]
        names = {files: name for name, files in self.files_of.items()}
        for files in self.unique:
            rule = self.resolved.rules[names[files]]
            generated = Headers((f"{BUILD}/{files.folder}",), (self.graph.node(files.header),))
            headers = joined(generated, self.graph.headers(rule.label))
            nodes += [*rule.srcs, *headers.nodes]
            parts.append((names[files], rule, headers))

        def unit(name: str, rule: ComponentRule, headers: Headers) -> TwinUnit:
            return TwinUnit(
                variant=self.resolved.variant(name),
                sources=tuple(map(str, rule.srcs)),
                includes=headers.folders,
                defines=(*headers.defines, *rule.local_defines),
            )

        request = TwinRequest(
            units=(),
            runtime=tuple(map(str, self.runtime.srcs)),
            runtime_includes=(*self.runtime.includes, *abi.folders),
            glue=self.path("glue.cu"),
            variants=f"{BUILD}/{paths.variants_folder(self.arch)}",
            program=self.path("plan.json"),
            placement=self.path("placement.json"),
            audit=self.path("audit.json"),
            cubin=self.path("cubin"),
            arch=self.arch,
            backend=self.session.options.linker,
            build=BUILD,
            lto_cubin=self.path("lto_twin.cubin"),
            native_cubin=self.path("native_twin.cubin"),
            out=self.path("twin.json"),
        )

        def run(inputs: tuple[str, ...]) -> None:
            units = tuple(unit(*part) for part in parts)
            build_twins(replace(request, units=units), self.session.toolkit)

        inputs = ("glue.cu", "plan.json", "placement.json", "cubin")
        nodes += [self.node(self.path(name)) for name in inputs]
        action = self.action("Twin", run, memory=2 << 30)
        targets = self.targets("twin.json", "lto_twin.cubin", "native_twin.cubin", "twin.cu")
        key = [self.arch, request.backend, *(str(part[2].defines) for part in parts)]
        return self.graph.add(NodeRequest("twin", action, targets, nodes, key, tool=True))
