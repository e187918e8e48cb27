from link_fixtures import link_object

from pipelink_rules.link.link_inputs import shared_names
from pipelink_rules.model.variant import WeakSymbol


def run():
    # Two components were compiled against two versions of a library of headers: names agree.
    def table(body):
        return (
            WeakSymbol("_ZN8tile_lib7swizzleEj", "func", body),
            WeakSymbol("_ZN8tile_lib7versionE", "data", body),
            WeakSymbol("_ZN8pipelink13stage_addressERKNS_4RingERKNS_6CursorE", "func", "same"),
        )

    old = link_object("mainloop", weak=table("aaaa"), folder="third_party/v3/")
    new = link_object("epilogue", weak=table("bbbb"), folder="third_party/v4/")
    return shared_names([old, new])
