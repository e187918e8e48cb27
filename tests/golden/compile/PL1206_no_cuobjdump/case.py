from link_fixtures import toolkit_of

from pipelink_rules.toolkit.fatbin import images_of


def run():
    images_of("scale.fatbin", toolkit_of(cuobjdump=""))
