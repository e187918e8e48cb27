from link_fixtures import link_object, toolkit_of

from pipelink_rules.files.atomic import sha256
from pipelink_rules.link.link_inputs import check_objects


def made(name, **more):
    return link_object(name, objects=((f"{name}.fatbin", sha256(f"{name}.fatbin")),), **more)


def run():
    return check_objects([made("scale", compiler="13.6.12")], "sm_90a", toolkit_of())
