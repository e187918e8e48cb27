from linked import toolkit_of

from pipelink_rules.compile.codegen import images_of


def run():
    images_of("scale.fatbin", toolkit_of(cuobjdump=""))
