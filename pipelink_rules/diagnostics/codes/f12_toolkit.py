"""PL12xx: the CUDA toolkit, its tools, and the link itself."""

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL1201",
        "no-toolkit",
        "Without a toolkit that links sm_90a code, every later step fails with a stranger message.",
        "nvlink 13.0 and 13.1 drop the architecture suffix under -lto; 13.2 keeps it",
        "compile",
    ),
    Code(
        "PL1202",
        "linker-older-than-object",
        "A linker cannot read intermediate code of a newer compiler.",
        "nvJitLink documentation, compatibility: the linker is at least as new as each object",
        "link",
    ),
    Code(
        "PL1203",
        "toolkit-major-differs",
        "Intermediate code of another CUDA major version is not linkable.",
        "nvJitLink documentation, compatibility: LTO-IR is compatible within a major release",
        "link",
    ),
    Code(
        "PL1204",
        "tool-failed",
        "A tool that crashes or cannot start must not look like a mistake in a component.",
        "",
        "compile",
    ),
    Code(
        "PL1205",
        "tool-too-slow",
        "A tool that never returns must not hold the build for ever.",
        "",
        "compile",
    ),
    Code(
        "PL1206",
        "tool-missing",
        "An audit without cuobjdump and nvdisasm would be a guess.",
        "CUDA binary utilities",
        "link",
    ),
    Code(
        "PL1207",
        "object-lacks-architecture",
        "nvlink passes over an object without code for the target and may link an empty kernel.",
        "nvlink: 'SM Arch not found' is a warning",
        "link",
    ),
    Code(
        "PL1208",
        "code-generation-flags-differ",
        "Objects of one link share ftz, prec-div, prec-sqrt and fmad: a mix is refused by nvlink "
        "and decided by input order in nvJitLink.",
        "CUDA compiler driver, link-time optimisation",
        "link",
    ),
    Code("PL1209", "link-failed", "The vendor's linker refused the link.", "", "link"),
    Code(
        "PL1210",
        "undefined-symbol",
        "An entry whose contract, parameters or flags differ from those it was called with has "
        "another name, so that a mismatch is an undefined symbol and not a wrong call.",
        "device ABI: the entry symbol carries the digest of the variant",
        "link",
    ),
    Code(
        "PL1211",
        "symbol-defined-twice",
        "Two objects define the same external symbol.",
        "CUDA compiler driver, separate compilation",
        "link",
    ),
    Code(
        "PL1212",
        "not-all-link-time-code",
        "A part that is not link-time code is called and not folded: registers, stack and barriers "
        "of the kernel are then no longer those of the plan.",
        "nvlink: 'not built for LTO so doing partial LTO'",
        "link",
    ),
    Code(
        "PL1213",
        "entry-missing",
        "A link can return success without the kernel.",
        "nvlink returns 0 and an empty cubin where no input had code for the target",
        "link",
    ),
    Code(
        "PL1214",
        "backend-unavailable",
        "The linker that was asked for is not installed or does not pass its probe.",
        "",
        "link",
    ),
    Code(
        "PL1215",
        "option-refused",
        "An option that changes code or order of a component without entering its identity makes "
        "two different objects look equal.",
        "only -ftz, -prec-div, -prec-sqrt, -fmad and --use_fast_math enter the variant",
        "compile",
    ),
)
