from link_fixtures import audit_of_demo, log_of, placement_of_demo, program_of_demo

from pipelink_rules.link.audit_kernel import compare
from pipelink_rules.model.source_span import Span


def run():
    program = program_of_demo(Span("SConscript", 3, 1, 14))
    found = audit_of_demo()
    log = log_of(
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are"
        " serialized due to wgmma pipeline crossing function boundary in the function 'demo'"
    )
    return compare(found, program, placement_of_demo(), log)
