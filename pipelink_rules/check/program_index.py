"""Look-ups of ports, roles and connections by name, and the type of a check."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.contract import Contract, Operation, Port, Role
from pipelink_rules.model.operation import operations
from pipelink_rules.model.program import Channel, Connection, Program, ProgramRole
from pipelink_rules.model.target import Target

End = tuple[str, str]  # instance, port


class ProgramIndex:
    """A program and its target with look-ups: the input of every check."""

    def __init__(self, program: Program, target: Target):
        self.program, self.target = program, target
        self.contracts: dict[str, Contract] = {
            item.name: item.variant.contract for item in program.instances
        }

    @cached_property
    def protocol(self) -> ProtocolIndex:
        """The look-ups of the protocol."""
        return ProtocolIndex(self.program)

    def ports(self) -> Iterator[tuple[str, Contract, Port]]:
        """Yield (instance, contract, port) for every port of the program."""
        for instance, contract in self.contracts.items():
            for port in contract.ports:
                yield instance, contract, port

    def roles(self) -> Iterator[tuple[str, Contract, Role]]:
        """Yield (instance, contract, role) for every role of an instance."""
        for instance, contract in self.contracts.items():
            for role in contract.roles:
                yield instance, contract, role

    def operations(self, *verbs: str) -> Iterator[tuple[str, Role, Operation]]:
        """Yield (instance, role, operation) for the operations of bodies with one of the verbs."""
        for instance, _, role in self.roles():
            for op in operations(role.body):
                if op.verb in verbs:
                    yield instance, role, op

    def connected_ports(self) -> Iterator[tuple[Connection, Port, Port]]:
        """Yield (connection, producer's port, consumer's port) for every connection."""
        for item in self.program.connections:
            yield item, self.port(item.producer), self.port(item.consumer)

    def port(self, end: End) -> Port:
        """Return the port at an end of a connection."""
        return self.contracts[end[0]].port(end[1])

    def role_of(self, end: End) -> Role:
        """Return the role that a port belongs to."""
        return self.contracts[end[0]].role(self.port(end).role)

    def home(self, instance: str, role: str) -> ProgramRole:
        """Return the program role that runs a role of an instance."""
        return next(item for item in self.program.roles if (instance, role) in item.members)

    def connection(self, channel: Channel, *ends: End) -> Connection:
        """Return the connection of a channel whose consumer is among `ends`, else its first."""
        by_consumer = {item.consumer: item for item in self.program.connections}
        consumers = [end for end in channel.consumers if end in ends] or channel.consumers
        return by_consumer[consumers[0]]


def qualified_name(end: End) -> str:
    """Return `load.ab`."""
    return ".".join(end)


Check = Callable[[ProgramIndex], Iterable[Diagnostic]]
