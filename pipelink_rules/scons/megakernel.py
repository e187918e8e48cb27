"""The nodes of one megakernel for one target, from its declaration to manifest and map."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pipelink_rules.actions import paths
from pipelink_rules.files.codec import write_json
from pipelink_rules.model.program import CLUSTER_BUILD
from pipelink_rules.scons.action import Action
from pipelink_rules.scons.graph import Graph, Headers, Inputs, joined
from pipelink_rules.scons.resolve import ResolvedMegakernel
from pipelink_rules.scons.session import BUILD, RuntimeRule


class MegakernelNodes:
    """Adds the nodes; those that other rules refer to are attributes."""

    def __init__(
        self,
        graph: Graph,
        resolved: ResolvedMegakernel,
        arch: str,
        files_of: dict[str, paths.VariantFiles],
        runtime: RuntimeRule,
    ):
        """files_of: instance -> the files of its variant for this target."""
        self.graph, self.session = graph, graph.session
        self.resolved, self.requested, self.arch = resolved, resolved.requested, arch
        self.files_of, self.runtime = files_of, runtime
        self.stem = paths.megakernel_stem(BUILD, arch, resolved.requested.name)
        self.unique = sorted(set(files_of.values()), key=lambda item: item.folder)
        # The code-generation flags, which are equal in all objects of a link.
        self.flags = next((one.variant.flags for one in self.requested.instances), ())
        self.check = self._declaration()
        self._placement()
        self._glue_object()
        self.results = [graph.node(self.path("spec.json")), *self._link(), *self._describe()]
        if self.session.options.twins:
            self.results += self._twins()
        # Objects and probe kernels: they wait for the check.
        self.variants = [
            graph.node(file) for item in self.unique for file in (item.fatbin, item.probe)
        ]

    def path(self, suffix: str) -> str:
        return f"{self.stem}.{suffix}"

    def add(
        self,
        stage: str,
        mnemonic: str,
        run: Callable[[Inputs], None],
        outputs: Sequence[str],
        sources: Iterable[Any],
        key: Iterable[str] = (),
        *,
        memory: int = 0,
        of: str = "",
        headers: Headers | None = None,
        tool: bool = False,
    ) -> list[Any]:
        """Add a node; outputs: their suffixes.  The rest is as in `Graph.add`."""
        action = Action(mnemonic, f"{of}{self.requested.name} for {self.arch}", run, memory)
        targets = [self.path(suffix) for suffix in outputs]
        return self.graph.add(stage, action, targets, sources, key, headers, tool=tool)

    def _declaration(self) -> Any:
        from pipelink_rules.actions.stage_actions import check_program

        def write(inputs: Inputs) -> None:
            write_json(self.path("spec.json"), self.resolved.nouns().spec)

        def check(inputs: Inputs) -> None:
            known = self.resolved.nouns()
            found = check_program(known.spec, known.variants, self.arch, self.path("check.json"))
            if found:
                self.session.report(found)

        self.add("spec", "Declare", write, ["spec.json"], [], [self.requested.text])
        return self.add("check", "Check", check, ["check.json"], [], self._key())[0]

    def _key(self) -> list[str]:
        """Return what stands for the declaration and all variants, places and prose included."""
        variants = [f"{one.name}={one.variant.text}" for one in self.requested.instances]
        return [self.requested.text, *variants, self.arch]

    def _placement(self) -> None:
        from pipelink_rules.actions.stage_actions import collect_program, place_program, write_glue

        program, plan, placement, source = (
            self.path(suffix)
            for suffix in ("program.json", "plan.json", "placement.json", "glue.cu")
        )
        interfaces = {name: files.interface for name, files in self.files_of.items()}
        lock = self._lock_file()

        def resolve(inputs: Inputs) -> None:
            known = self.resolved.nouns()
            sourced = {k: v for k, v in known.variants.items() if k not in known.prebuilt}
            collect_program(known.spec, sourced, interfaces, self.arch, program, plan)

        def place(inputs: Inputs) -> None:
            place_program(program, placement, lock)

        def glue(inputs: Inputs) -> None:
            write_glue(plan, placement, source)

        key = [*self._key(), *(f"{k}:{v}" for k, v in sorted(interfaces.items()))]
        measured = [item.interface for item in self.unique]
        self.add("collect", "Collect", resolve, ["program.json", "plan.json"], measured, key)
        self.add("place", "Place", place, ["placement.json"], filter(None, [program, lock]))
        self.add("glue", "Glue", glue, ["glue.cu"], [plan, placement])

    def _lock_file(self) -> str | None:
        """Return `<name>.<target>.lock.json` beside the SConscript: a placement to keep."""
        span = self.resolved.declared.span
        folder = self.session.top / span.file if span else self.session.top
        path = folder.parent / f"{self.requested.name}.{self.arch}.lock.json"
        return str(path) if path.is_file() else None

    def _glue_object(self) -> None:
        from pipelink_rules.compile.object import compile_object

        generated = [self.graph.node(item.header) for item in self.unique]
        folder = paths.variants_folder(BUILD, self.arch)
        headers = joined(self.graph.abi(), Headers((folder,), tuple(generated)))
        source = self.path("glue.cu")

        def run(inputs: Inputs) -> None:
            compile_object(
                source,
                self.path("glue.fatbin"),
                self.arch,
                self.session.toolkit,
                includes=headers.folders,
                defines=headers.defines,
                flags=self.flags,
                name=f"the glue of `{self.requested.name}`",
            )

        key = [self.arch, *self.flags, "", *headers.defines]
        key += map(self.graph.portable, headers.folders)
        self.add(
            "object",
            "CudaCompile",
            run,
            ["glue.fatbin", "glue.weak.json"],
            [source, *generated],
            key,
            memory=1 << 30,
            of="glue of ",
            headers=headers,
            tool=True,
        )

    def _link(self) -> list[Any]:
        from pipelink_rules.actions.link_actions import link_image
        from pipelink_rules.toolkit.weak_symbols import weak_file

        fatbins = [item.fatbin for item in self.unique]
        sidecars = [item.sidecar for item in self.unique]
        local = [self.path("glue.fatbin"), self.graph.runtime(self.arch, self.runtime, self.flags)]
        plan, placement = self.path("plan.json"), self.path("placement.json")
        backend = self.session.options.linker

        def run(inputs: Inputs) -> None:
            link_image(
                objects=[*fatbins, *local],
                sidecars=sidecars,
                program=plan,
                placement=placement,
                backend=backend,
                stem=self.stem,
                times=paths.times_file(BUILD, self.arch, self.requested.name),
                toolkit=self.session.toolkit,
                spec=self.resolved.nouns().spec,
            )

        weak = [weak_file(name).as_posix() for name in local]
        sources = [*fatbins, *local, *sidecars, *weak, plan, placement]
        outputs, key = ["cubin", "audit.json"], [self.arch, backend]
        return self.add("link", "DeviceLink", run, outputs, sources, key, memory=2 << 30, tool=True)

    def _describe(self) -> list[Any]:
        from pipelink_rules.actions.link_actions import write_reports

        runtime = self.runtime.label.name.removesuffix(CLUSTER_BUILD)

        def run(inputs: Inputs) -> None:
            write_reports(self.stem, runtime)

        inputs = ("program.json", "check.json", "placement.json", "audit.json", "cubin")
        outputs = ("manifest.json", "map.txt", "html")
        return self.add("describe", "Describe", run, outputs, map(self.path, inputs), [runtime])

    def _twins(self) -> list[Any]:
        """Return the nodes of the twins; none if an instance has no source."""
        from pipelink_rules.actions.link_actions import build_twins
        from pipelink_rules.link.twin import TwinUnit

        if any(one.sidecars for one in self.requested.instances):
            return []
        abi, runtime, backend = self.graph.abi(), self.runtime, self.session.options.linker
        parts = []
        nodes = [*runtime.srcs, *runtime.hdrs, *abi.nodes]
        names = {files: name for name, files in self.files_of.items()}
        for files in self.unique:
            rule = self.resolved.rules[names[files]]
            headers = self.graph.headers(rule.label)
            nodes += [*rule.srcs, self.graph.node(files.header), *headers.nodes]
            parts.append((names[files], files.folder, rule, headers))

        def run(inputs: Inputs) -> None:
            units = [
                TwinUnit(
                    self.resolved.variant(name),
                    folder,
                    tuple(map(str, rule.srcs)),
                    headers.folders,
                    (*headers.defines, *rule.local_defines),
                )
                for name, folder, rule, headers in parts
            ]
            variants = paths.variants_folder(BUILD, self.arch)
            includes = (*runtime.includes, *abi.folders, variants)
            sources = tuple(map(str, runtime.srcs))
            build_twins(self.stem, units, sources, includes, backend, self.session.toolkit)

        nodes += map(self.path, ("glue.cu", "plan.json", "placement.json", "cubin"))
        outputs = ["twin.json", "lto_twin.cubin", "native_twin.cubin", "twin.cu"]
        key = [self.arch, backend, *(str(part[-1].defines) for part in parts)]
        return self.add("twin", "Twin", run, outputs, nodes, key, memory=2 << 30, tool=True)
