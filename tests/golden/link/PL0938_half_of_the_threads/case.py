from link_fixtures import audit_of_demo, log_of, placement_of_demo, program_of_demo

from pipelink_rules.link.audit_kernel import compare
from pipelink_rules.model.linked_kernel import BarrierSite
from pipelink_rules.model.source_span import Span


def run():
    program = program_of_demo(Span("SConscript", 3, 1, 14))
    sites = (BarrierSite(1, "sync", 128, 1), BarrierSite(1, "sync", 256, 1))
    found = audit_of_demo(barrier_sites=sites)
    return compare(found, program, placement_of_demo(), log_of(""))
