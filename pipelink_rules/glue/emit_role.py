"""The glue of one role: ProgramRole -> relocations, ports, work loop, transfers, drains."""

from pipelink_rules.contract.header import fragment_floats, role_types
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.glue import cluster, tensor_memory
from pipelink_rules.glue.cuda_writer import CudaWriter, constant, parameter_names, stem
from pipelink_rules.glue.operation_script import site_numbers
from pipelink_rules.glue.parameters import counters_behind, kernel_parameters, parameter_index
from pipelink_rules.model.contract import RINGS, Operation, Port, Repeat, Role
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import HANDOVER, Program, ProgramRole
from pipelink_rules.model.variant import Variant


def emit_role(out: CudaWriter, program: Program, placement: Placement, role: ProgramRole) -> None:
    """Emit the block of one role: everything its warps do."""
    _RoleWriter(out, program, placement, role).emit()


class _RoleWriter:
    def __init__(
        self, out: CudaWriter, program: Program, placement: Placement, role: ProgramRole
    ) -> None:
        self.out, self.program, self.placement, self.role = out, program, placement, role
        self.start = dict(placement.warps)[role.name]
        self.sites = site_numbers(program)
        parameters = kernel_parameters(program)
        names = parameter_names(parameters)
        index = parameter_index(program)
        self.parameter = {place: names[position] for place, position in index.items()}
        self.symbols = {
            p.name: n
            for p, n in zip(parameters, names, strict=True)
            if p.kind == "i32" and not p.port
        }
        self.ends = program.channel_ends()

    def emit(self) -> None:
        out = self.out
        out.comment(f"role {self.role.name}: " + ", ".join(".".join(m) for m in self.role.members))
        base = f" - {32 * self.start}" if self.start else ""
        out.line(f"const uint32_t thread = threadIdx.x{base};")
        self._accumulators()
        self._schedule_ports()
        for instance, name in self.role.members:
            self._set_up(instance, name)
        for instance, name in self.role.members:
            self._once(instance, name, self._role(instance, name).prologue, "before its first item")
        first, step = cluster.numbers(self.program)
        with out.block(f"for (uint32_t item = {first}; item < items; item += {step})"):
            self._work_tile()
        for instance, name in self.role.members:
            drain = self._role(instance, name).epilogue
            self._once(instance, name, drain, "drained before it ends")

    # -- set-up ------------------------------------------------------------------------------
    def _accumulators(self) -> None:
        """Emit one array per fragment of this role; in-place ports and fused readers share it."""
        for instance, name in self.role.members:
            for port in self._ports(instance, name, "registers"):
                if self._storage(instance, port) == (instance, port.name):
                    self.out.line(f"float {instance}_{port.name}[{fragment_floats(port)}];")

    def _schedule_ports(self) -> None:
        instance, name = self.program.scheduler
        variant = self._variant(instance)
        symbols = [f".{s.name} = {self.symbols[s.name]}" for s in variant.contract.symbols]
        kind = role_types(variant, self._role(instance, name))[0]
        values = cluster.place(self.program) + symbols
        self.out.listed(f"const {kind} {instance}_port{{", values, "};")

    def _set_up(self, instance: str, name: str) -> None:
        variant, role = self._variant(instance), self._role(instance, name)
        relocations, ports, _ = role_types(variant, role)
        variable = stem(self.program, instance, name)
        for port in self._ports(instance, name, *RINGS):
            self._ring(f"{variable}_{port.name}", instance, name, port)
        values = self._relocations(instance, name, variable)
        self.out.listed(f"const {relocations} {variable}_at{{", values, "};")
        self.out.listed(f"{ports} {variable}_port{{", self._port_values(instance, name), "};")
        for port in self._handovers(instance, name):
            self._handover_ring(instance, name, port)

    def _relocations(self, instance: str, name: str, variable: str) -> list[str]:
        contract = self._variant(instance).contract
        rings = self._ports(instance, name, *RINGS)
        found = [f".{port.name} = {variable}_{port.name}_ring" for port in rings]
        for buffer in contract.buffers:
            if buffer.role == name:
                size = evaluate(buffer.bytes, {})
                where = f"shared + {constant(f'{instance}.{buffer.name}')}"
                found.append(f".{buffer.name} = {{{where}, {size}}}")
        ids = dict(self.placement.named)
        for barrier in contract.named_barriers:
            if name in barrier.roles:
                number = ids[f"{instance}.{barrier.name}"]
                site = self.sites[instance, name, barrier.name]
                threads = evaluate(barrier.count, {})
                found.append(f".{barrier.name} = {{{number}, {threads}, {site}, 0}}")
        return found

    def _ring(self, variable: str, instance: str, name: str, port: Port) -> None:
        channel = self.ends[instance, port.name]
        k = constant(channel.name)
        site = self.sites[instance, name, port.name]
        data = tensor_memory.data(self.program, channel)
        values = (data, f"shared + {k}Barriers", f"{k}Bytes", f"{k}Stages", str(site))
        ring = f"{variable}_{'own' if channel.multicast else 'ring'}"
        self.out.listed(f"const pipelink::Ring {ring} = pipelink::local_ring(", values, ");")
        if channel.multicast:
            cluster.ring(self.out, self.program, channel, variable)

    def _port_values(self, instance: str, name: str) -> list[str]:
        contract = self._variant(instance).contract
        found = [
            f".{port.name} = {self._port_value(instance, port)}"
            for port in contract.ports
            if port.role == name and not (port.space == "registers" and port.in_place)
        ]
        return found + [f".{s.name} = {self.symbols[s.name]}" for s in contract.symbols]

    def _port_value(self, instance: str, port: Port) -> str:
        if port.space in RINGS:
            return "{0, 0}"
        if port.space == "registers":
            return "_".join(self._storage(instance, port))
        value = self.parameter[instance, port.name]
        if port.space == "counter":
            arrivals = evaluate(counters_behind(self.program, (instance, port.name)).arrivals, {})
            site = self.sites[instance, port.role, port.name]
            scope = f"pipelink::k{port.scope.capitalize()}Scope"
            return f"pipelink::counters_of({value}, {arrivals}, {scope}, {site})"
        if port.space == "global" and port.tile is not None:
            return f"&{value}"
        return value

    def _handover_ring(self, instance: str, name: str, port: Port) -> None:
        variable = f"{instance}_{port.name}"
        way = "leaves for" if port.direction == "out" else "comes from"
        through = "other warps through shared memory: the fragments differ in warps"
        self.out.comment(f"{instance}.{port.name} {way} {through}")
        self._ring(variable, instance, name, port)
        self.out.line(f"pipelink::Cursor {variable}_cursor{{0, 0}};")

    # -- work tile ---------------------------------------------------------------------------
    def _work_tile(self) -> None:
        out = self.out
        instance, name = self.program.scheduler
        variant = self._variant(instance)
        kind = role_types(variant, self._role(instance, name))[1]
        out.line(f"{kind} {instance}_work;")
        out.line(f"{variant.symbol(name)}({instance}_port, item, {instance}_work);")
        if self.role.calls > 1:
            out.comment(f"fewer warps than declared: {self.role.calls} shares, one after the other")
            out.line("#pragma unroll 1")
            with out.block(f"for (uint32_t call = 0; call < {self.role.calls}; ++call)"):
                self._calls(f"thread + call * {32 * self.role.warps}")
        else:
            self._calls("thread")
        for instance, name in self.role.members:
            for port in self._handovers(instance, name):
                variable = f"{instance}_{port.name}"
                out.line(f"pl_ring_advance({variable}_ring, {variable}_cursor);")

    def _calls(self, thread: str) -> None:
        for instance, name in self.role.members:
            handovers = self._handovers(instance, name)
            for port in handovers:
                if port.direction == "in":
                    self._move("load", instance, port, thread)
            self._call(instance, name, thread)
            for port in handovers:
                if port.direction == "out":
                    self._move("store", instance, port, thread)

    def _call(self, instance: str, name: str, thread: str) -> None:
        variant, role = self._variant(instance), self._role(instance, name)
        variable = stem(self.program, instance, name)
        scheduler = self.program.scheduler[0]
        offered = self._variant(scheduler).contract.work
        given = {field.name for field in (offered.fields if offered else ())}
        work = variant.contract.work
        fields = [  # a field that the tile scheduler does not have keeps its default
            f".{f.name} = {f'{scheduler}_work.{f.name}' if f.name in given else f.default}"
            for f in (work.fields if work else ())
        ]
        self.out.listed(f"const {role_types(variant, role)[2]} {variable}_work{{", fields, "};")
        values = (f"{variable}_at", f"{variable}_port", f"{variable}_work", thread)
        self.out.listed(f"{variant.symbol(name)}(", values, ");")

    def _move(self, verb: str, instance: str, port: Port, thread: str) -> None:
        channel, variable = self.ends[instance, port.name], f"{instance}_{port.name}"
        share_bytes = channel.stage_bytes // channel.shares
        ring = f"pipelink::share_of({variable}_ring, ({thread}) / 128, {share_bytes})"
        values = (ring, f"{variable}_cursor", "_".join(self._storage(instance, port)), thread)
        self.out.listed(f"pipelink::handover_{verb}(", values, ");")

    # -- once --------------------------------------------------------------------------------
    def _once(
        self, instance: str, name: str, ops: tuple[Operation | Repeat, ...], why: str
    ) -> None:
        if ops:
            self.out.comment(f"{instance}.{name}: {why}")
        variable = stem(self.program, instance, name)
        for op in ops:
            if isinstance(op, Repeat):
                raise AssertionError("the contract loader refuses repeats outside the body")
            self.out.line(_runtime_call(op, variable))

    # -- look-ups ----------------------------------------------------------------------------
    def _variant(self, instance: str) -> Variant:
        return self.program.instance(instance).variant

    def _role(self, instance: str, name: str) -> Role:
        return self._variant(instance).contract.role(name)

    def _ports(self, instance: str, name: str, *spaces: str) -> list[Port]:
        """Return the ports of a role in these spaces, in the order of the relocations."""
        ports = self._variant(instance).contract.ports
        return [port for port in ports if port.role == name and port.space in spaces]

    def _handovers(self, instance: str, name: str) -> list[Port]:
        """Return the fragments that pass to or from other warps."""
        ports = self._ports(instance, name, "registers")
        return [port for port in ports if self._handover(instance, port)]

    def _handover(self, instance: str, port: Port) -> bool:
        channel = self.ends.get((instance, port.name))
        return channel is not None and channel.kind == HANDOVER

    def _storage(self, instance: str, port: Port) -> tuple[str, str]:
        """Return the (instance, port) whose array holds this fragment."""
        if port.in_place:
            return self._storage(instance, self.program.port((instance, port.in_place)))
        if port.direction == "in" and not self._handover(instance, port):
            for connection in self.program.connections:
                if connection.consumer == (instance, port.name):
                    producer = connection.producer
                    return self._storage(producer[0], self.program.port(producer))
        return instance, port.name


def _runtime_call(op: Operation, variable: str) -> str:
    if op.verb == "await" and op.target == "store":
        return f"pl_store_{'complete' if op.full else 'wait'}({op.count});"
    if op.verb == "fence":
        return f"pl_fence_{op.target}();"
    if op.verb in ("sync", "arrive"):
        return f"pl_barrier_{op.verb}({variable}_at.{op.target});"
    raise AssertionError(f"the contract loader refuses {op.verb!r} outside the body")
