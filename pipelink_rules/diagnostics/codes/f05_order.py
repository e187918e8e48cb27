"""PL05xx: order of accesses, proxies, groups in flight."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL0501",
        "unordered-access",
        "Two accesses of one piece of shared memory in no order are a race.",
        "PTX ISA, memory consistency model: causality order",
        "check",
    ),
    Code(
        "PL0502",
        "missing-proxy-fence",
        "A generic and an asynchronous access are not ordered by barriers alone.",
        "PTX ISA, memory consistency model, proxies; async proxy: a fence.proxy.async lies between"
        " them",
        "check",
    ),
    Code(
        "PL0503",
        "stale-access",
        "An access that comes before the data it needs always uses those of another item.",
        "contract language: every item is written, then read, then its stage is written again",
        "check",
    ),
    Code(
        "PL0504",
        "wgmma-in-flight",
        "wgmma reads shared memory and writes registers until its group has been waited for.",
        "PTX ISA, wgmma.wait_group: at most N of the latest groups are pending; tcgen05.commit: "
        "arrives when the mma before it are over",
        "check",
    ),
    Code(
        "PL0505",
        "store-in-flight",
        "A bulk store reads shared memory until its group has been waited for.",
        "PTX ISA, cp.async.bulk.wait_group.read: the sources of all but the latest N groups were "
        "read",
        "check",
    ),
    Code(
        "PL0507",
        "tensor-order",
        "Work items of different CTAs are in no order, unless a counter at gpu scope makes one.",
        "PTX ISA, memory consistency model: causality order between CTAs needs a release and an "
        "acquire",
        "check",
    ),
    Code(
        "PL0508",
        "scratch-not-cleared",
        "Scratch memory holds what an earlier launch left, unless somebody writes or clears it.",
        "contract language: `init: none` promises nothing of what scratch memory holds",
        "check",
    ),
    Code(
        "PL0509",
        "tensor-memory-order",
        "Operations on tensor memory are asynchronous: no barrier orders them alone.",
        "PTX ISA, tcgen05 memory consistency model: tcgen05.commit, tcgen05.wait and "
        "tcgen05.fence::before_thread_sync, ::after_thread_sync",
        "check",
    ),
    Code(
        "PL0510",
        "access-not-declared",
        "An access that a contract leaves out is in no order with any other.",
        "contract language: the operations of a role are all that it does with its ports",
        "check",
    ),
)
