from link_fixtures import audit_of_demo, log_of, placement_of_demo, program_of_demo

from pipelink_rules.link.audit_kernel import compare
from pipelink_rules.model.source_span import Span


def run():
    program = program_of_demo(Span("SConscript", 3, 1, 14))
    found = audit_of_demo(region_registers=(("load", 56), ("mma", 154)))
    log = log_of("")
    return compare(found, program, placement_of_demo(), log)
