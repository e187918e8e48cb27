from link_fixtures import log_of

from pipelink_rules.link.linker_log import link_failure

TEXT = """\
nvlink info    : b.fatbin: link error: error: Linking globals named '_Z9pad_widthi': \
symbol multiply defined!

NVVM_ERROR_COMPILATION
nvlink fatal   : elfLink JIT compile failed
"""


def run():
    log = log_of()
    return [link_failure(TEXT, "demo", log.backend, log.command)]
