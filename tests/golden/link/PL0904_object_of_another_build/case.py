from link_fixtures import link_object, toolkit_of

from pipelink_rules.link.link_inputs import check_objects


def run():
    recorded = (("scale.fatbin", "1" * 64),)
    return check_objects([link_object("scale", objects=recorded)], "sm_90a", toolkit_of())
