from link_fixtures import audit_of_demo, log_of, placement_of_demo, program_of_demo

from pipelink_rules.link.audit_kernel import compare
from pipelink_rules.model.source_span import Span


def run():
    program = program_of_demo(Span("SConscript", 3, 1, 14))
    # An array of two rings, indexed by a field of the work tile: a stack and no spills.
    return compare(audit_of_demo(stack_bytes=64), program, placement_of_demo(), log_of(""))
