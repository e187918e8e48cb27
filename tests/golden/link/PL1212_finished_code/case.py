from pathlib import Path

from link_fixtures import cubin, log_of

from pipelink_rules.link.link import read_back


def run():
    out = Path(__file__).with_name("demo.cubin")
    out.write_bytes(cubin({"demo": bytes(16)}))
    text = (
        "nvlink info    : requested LTO but 'scale.fatbin' not built for LTO so doing partial LTO"
    )
    try:
        return list(read_back(out, "demo", "sm_90a", log_of(text)))
    finally:
        out.unlink()
