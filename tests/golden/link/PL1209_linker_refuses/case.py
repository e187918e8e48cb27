from link_fixtures import log_of

from pipelink_rules.link.linker_log import failure

TEXT = """\
nvlink fatal   : Internal error: unexpected reloc
"""


def run():
    log = log_of()
    return [failure(TEXT, "demo", log.backend, log.command)]
