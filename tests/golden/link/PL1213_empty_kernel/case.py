from pathlib import Path

from link_fixtures import cubin, log_of

from pipelink_rules.link.link import read_back


def run():
    out = Path(__file__).with_name("demo.cubin")
    out.write_bytes(cubin({}))
    try:
        return list(read_back(out, "demo", "sm_90a", log_of()))
    finally:
        out.unlink()
