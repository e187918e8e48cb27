from link_fixtures import toolkit_of

from pipelink_rules.link.link import link


def run():
    return link([], "demo", "sm_90a", toolkit_of(), "nvjitlnk", "demo.cubin")
