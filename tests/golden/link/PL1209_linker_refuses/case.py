from link_fixtures import log_of

from pipelink_rules.link.linker_log import link_failure

TEXT = """\
nvlink fatal   : Internal error: unexpected reloc
"""


def run():
    log = log_of()
    return [link_failure(TEXT, "demo", log.backend, log.command)]
