"""How is a good input broken?  Bytes, texts, JSON and Python values, each by a seeded chance."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

NASTY_NUMBERS = [
    *(0, 1, -1, 2, 3, 7, 64, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64),
    *(-(2**31), -(2**63), -(2**64), 10**30),
]
NASTY_TEXTS = [
    *("", " ", "\x00", "a\x00b", "é", "\u2028", "\u202e", "\ufeff", "\U0001f600", "x" * 3000),
    *("../../etc/passwd", "/etc/passwd", "..", ".", "a/../../b", "C:\\x", "//x:y", "@x//..:y"),
    *("null", "true", "~", "0x10", "1e999", "-1", "99999999999999999999", "1 // 0", "2 ** 99999"),
    *("(" * 500, "not " * 400, "M" + " * M" * 200, "__import__('os')", "M.N", "lambda: 0", "a.b.c"),
    *("load.ab", "mma.ab", "sm_90a", "sm_0", "ring", "f32", "release", "tiles", "%s", "{}", "\\"),
    *("\ud800", "9" * 5000, "-" * 2000 + "1", "M" * 3000),
]
SCRAPS = [
    *"{}[]():,;-?|>'\"#&*!%@`\n\t\\/ \r\x00\x1b\x7f",
    *(
        "  ",
        "\n  - ",
        ": ",
        "&a ",
        "*a ",
        "<<: *a",
        "!!python/object:os.system ",
        "--- \n",
        "...\n",
    ),
    *(
        "{",
        "[" * 50,
        "{a: " * 40,
        "é",
        "\u2028",
        "null",
        "99999999999999999999",
        "NaN",
        "-Infinity",
    ),
    *("// ", "/*", "*/", '"', "\\u0000", "\\ud800", "0x", "1e400", "%r1", ".reg", "BB0_1:", "`("),
    *(
        "9" * 400,
        "a" * 400,
        " " * 400,
        "\n" * 200,
        "$",
        "_",
        "@p",
        "@!p",
        ".L_x_1:",
        "\x0c",
        "\x85",
    ),
]
LEAVES: list[Any] = [None, True, False, 0.5, -0.0, float("nan"), float("inf"), [], {}, "", [[]]]


def mutated_bytes(data: bytes, chance: random.Random) -> bytes:
    """A few byte-wise faults: truncated, flipped, doubled, overwritten, of another encoding."""
    out = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        at = chance.randrange(len(out) + 1)
        end = min(len(out), at + chance.choice([1, 1, 2, 4, 8, 64, 512]))
        match chance.randrange(9):
            case 0:
                del out[at:]
            case 1:
                del out[at:end]
            case 2:
                out[at:end] = chance.randbytes(end - at)
            case 3:
                out[at:at] = out[at:end] * chance.choice([1, 2, 50])
            case 4 if at < len(out):
                out[at] ^= 1 << chance.randrange(8)
            case 5:
                size = chance.choice([2, 4, 8])
                value = chance.choice(NASTY_NUMBERS) % 2 ** (8 * size)
                at -= at % size
                out[at : at + size] = value.to_bytes(size, "little")
            case 6:
                out[at:end] = b"\0" * (end - at)
            case 7:
                out[at:at] = chance.choice([b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3\x28", b"\x80"])
            case _:
                other = chance.randrange(len(out) + 1)
                out[at:end] = out[other : other + end - at]
    return bytes(out[: 1 << 20])


def mutated_text(data: bytes, chance: random.Random) -> bytes:
    """Faults of characters and of lines."""
    text = data.decode("utf-8", "replace")
    for _ in range(chance.choice([1, 1, 2, 4])):
        if chance.random() < 0.5:
            start = chance.randrange(len(text) + 1)
            end = min(len(text), start + chance.choice([0, 0, 1, 2, 8, 40]))
            text = text[:start] + chance.choice(["", *SCRAPS, *NASTY_TEXTS]) + text[end:]
            continue
        lines = text.split("\n")
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(5):
            case 0:
                del lines[at : at + chance.choice([1, 3, 20])]
            case 1:
                lines[at:at] = [lines[other]] * chance.choice([1, 2, 300])
            case 2:
                lines[at] = chance.choice([" ", "  ", "\t"]) + lines[at]
            case 3:
                lines[at], lines[other] = lines[other], lines[at]
            case _:
                words = lines[at].split(" ")
                words[chance.randrange(len(words))] = chance.choice(
                    [str(chance.choice(NASTY_NUMBERS)), *NASTY_TEXTS[:20], *lines[other].split(" ")]
                )
                lines[at] = " ".join(words)
        text = "\n".join(lines)
    return text.encode("utf-8", "surrogatepass")


def _steps(node: Any, chance: random.Random) -> tuple[Any, Any]:
    """A random container of the tree and one of its keys."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = chance.choice(keys)
        inner = node[key]
        if not isinstance(inner, (dict, list)) or not inner or chance.random() < 0.15:
            return node, key
        node = inner


def mutated_value(data: Any, chance: random.Random, leaves: list[Any] | None = None) -> Any:
    """One or a few values of a tree of dicts and lists replaced, moved, doubled or dropped."""
    root = {"": copy.deepcopy(data)}
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        node, key = _steps(root, chance)
        match chance.randrange(8):
            case 0:
                node[key] = chance.choice(NASTY_NUMBERS)
            case 1:
                node[key] = chance.choice(NASTY_TEXTS)
            case 2:
                node[key] = copy.deepcopy(chance.choice(leaves or LEAVES))
            case 3 if node is not root:
                del node[key]
                if not node:
                    break
            case 4:
                other, inner = _steps(root, chance)
                node[key] = copy.deepcopy(other[inner])
            case 5 if isinstance(node, list):
                node[key:key] = [copy.deepcopy(node[key])] * chance.choice([1, 2, 40])
            case 6 if isinstance(node, dict):
                node[chance.choice(NASTY_TEXTS)] = node[key]
            case _ if isinstance(node[key], int):
                node[key] += chance.choice([-1, 1, 2, 1000])
            case _ if isinstance(node[key], str):
                text = node[key].encode("utf-8", "surrogatepass")
                node[key] = mutated_text(text, chance).decode("utf-8", "replace")
            case _:
                node[key] = [node[key]] * chance.choice([1, 2])
    return root[""]


def _parents(node: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything below a tree."""
    pairs = list(node.items() if isinstance(node, dict) else enumerate(node))
    found = [(node, key) for key, _ in pairs]
    for _, inner in pairs:
        if isinstance(inner, (dict, list)):
            found += _parents(inner)
    return found


def mutated_names(data: bytes, chance: random.Random) -> bytes:
    """A well-formed file that contradicts itself: other names, numbers and entries of lists."""
    tree = json.loads(data)
    places = [(node, key) for node, key in _parents(tree) if key != "format"]
    leaves = [node[key] for node, key in places if not isinstance(node[key], (dict, list))]
    texts = [leaf for leaf in leaves if isinstance(leaf, str)]
    numbers = [leaf for leaf in leaves if isinstance(leaf, int) and not isinstance(leaf, bool)]
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        node, key = chance.choice(places)
        value = node[key] if isinstance(node, dict) and key in node else None
        value = node[key] if isinstance(node, list) and key < len(node) else value
        if isinstance(value, bool):
            node[key] = not value
        elif isinstance(value, str):
            node[key] = chance.choice([chance.choice(texts), f"{value}x", value[:-1], ""])
        elif isinstance(value, int):
            nearby = [value - 1, value + 1, -value, 2 * value, value // 2, 0, 1]
            node[key] = chance.choice([*nearby, chance.choice(numbers), 2**31 - 1, 2**40])
        elif isinstance(value, list) and value:
            at = chance.randrange(len(value))
            match chance.randrange(3):
                case 0:
                    del value[at]
                case 1:
                    value.insert(at, copy.deepcopy(chance.choice(value)))
                case _:
                    chance.shuffle(value)
    return json.dumps(tree).encode()


def mutated_json(data: bytes, chance: random.Random) -> bytes:
    """Mostly a valid JSON text of a broken tree; sometimes broken text."""
    kind = chance.random()
    if kind < 0.15:
        return mutated_text(data, chance)
    if kind < 0.2:
        return mutated_bytes(data, chance)
    tree = mutated_value(json.loads(data), chance)
    return json.dumps(tree, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")


def mutated_words(data: bytes, chance: random.Random) -> bytes:
    """Texts for people and machines: faults of characters, seldom of bytes."""
    return (mutated_bytes if chance.random() < 0.2 else mutated_text)(data, chance)


def anything(chance: random.Random) -> bytes:
    """Random bytes."""
    return chance.randbytes(chance.choice([0, 1, 7, 64, 1000, 5000]))
