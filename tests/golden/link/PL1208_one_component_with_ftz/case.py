from link_fixtures import image, link_object, toolkit_of

from pipelink_rules.files.atomic import sha256
from pipelink_rules.link.link_inputs import check_objects


def made(name, **more):
    return link_object(name, objects=((f"{name}.fatbin", sha256(f"{name}.fatbin")),), **more)


def run():
    fast = made("bias", images=(image(ftz="1"),))
    return check_objects([made("scale"), fast], "sm_90a", toolkit_of())
