from link_fixtures import log_of

from pipelink_rules.link.linker_log import link_failure

TEXT = """\
ptxas fatal   : Unresolved extern function 'pl_scale_apply_0123456789ab'
nvlink fatal   : elfLink fatbinary error
"""


def run():
    log = log_of()
    return [link_failure(TEXT, "demo", log.backend, log.command)]
