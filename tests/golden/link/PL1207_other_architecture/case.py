from link_fixtures import image, link_object, toolkit_of

from pipelink_rules.files.atomic import sha256
from pipelink_rules.link.link_inputs import check_objects


def made(name, **more):
    return link_object(name, objects=((f"{name}.fatbin", sha256(f"{name}.fatbin")),), **more)


def run():
    ready = made("scale", images=(image("sm_90a", "elf"),))
    other = made("bias", images=(image("sm_100a"),))
    return check_objects([ready, other], "sm_90a", toolkit_of())
