from link_fixtures import link_object

from pipelink_rules.link.link_inputs import shared_names
from pipelink_rules.model.variant import WeakSymbol


def run():
    def table(body):
        return (
            WeakSymbol("_Z9pad_widthi", "func", body),
            WeakSymbol("_ZN4Tile4areaEv", "func", body),
            WeakSymbol("_ZN8pipelink13stage_addressERKNS_4RingERKNS_6CursorE", "func", "same"),
        )

    wide = link_object("tile", weak=table("aaaa"), digest="aaaaaaaaaaaa", folder="wide/")
    narrow = link_object("tile", weak=table("bbbb"), digest="bbbbbbbbbbbb", folder="narrow/")
    return shared_names([wide, narrow])
