"""PL13xx: what the build rules are told, and what happens around a build."""

from pipelink_rules.diagnostics.code import Code

_SAME_INPUT = "same input, same bytes: a node depends on everything that its step reads"

CODES: tuple[Code, ...] = (
    Code(
        "PL1301",
        "label-declared-twice",
        "With two declarations under one label, the order of the files would choose between them.",
        "a label names one rule",
        "build",
    ),
    Code(
        "PL1302",
        "unknown-label",
        "An instance of a component that is not declared has no code.",
        "labels are //package:name; the package is the folder of the SConscript",
        "build",
    ),
    Code(
        "PL1303",
        "undeclared-header",
        "A header that the build does not watch makes stale objects when it is edited.",
        _SAME_INPUT,
        "build",
    ),
    Code(
        "PL1304",
        "input-changed-during-step",
        "An object made from half of an edit would be kept, and cached, as that of the whole.",
        _SAME_INPUT,
        "build",
    ),
    Code(
        "PL1305",
        "build-directory-in-use",
        "Two builds in one directory overwrite each other's files and signatures.",
        "one build at a time in a build directory",
        "build",
    ),
    Code(
        "PL1306",
        "cache-in-interactive-build",
        "An interactive build keeps signatures of files that were edited since, and would take "
        "the wrong object from a cache.",
        "SCons issue 2606",
        "build",
    ),
    Code(
        "PL1307",
        "rule-attribute",
        "A misspelt or misused attribute must not be passed over in silence.",
        "attributes follow rules_cuda: name, srcs, hdrs, deps, includes, copts, defines, "
        "local_defines, archs",
        "build",
    ),
    Code(
        "PL1308",
        "headers-are-no-instance",
        "A component without sources has no object, so a link would silently lack it.",
        "an instance is a variant: one object",
        "build",
    ),
    Code(
        "PL1309",
        "name-and-contract-differ",
        "A label that names another component than its contract leads every message astray.",
        "name= of a component is `component:` of its contract",
        "build",
    ),
    Code(
        "PL1310",
        "no-prebuilt-variant",
        "Without a source only the variants that were delivered can be linked.",
        "a prebuilt component is its sidecars and the objects beside them",
        "build",
    ),
    Code(
        "PL1311",
        "variants-collide",
        "Two components with one name and one interface would define the same symbols.",
        "an entry's symbol is made of component, role and variant",
        "build",
    ),
    Code(
        "PL1312",
        "command-line-value",
        "An option that is passed over builds something else than was asked for.",
        "`scons -h` lists the options",
        "build",
    ),
    Code(
        "PL1313",
        "no-list-of-headers",
        "Without the compiler's list of headers nobody knows what an object depends on.",
        "nvcc -MMD writes the list; a wrapper may drop it",
        "build",
    ),
)
