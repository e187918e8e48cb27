"""Names of a contract that can be identifiers of the generated C++."""

import re

from pipelink_rules.model.contract import DTYPES

LONGEST = 48
IDENTIFIER = re.compile(r"[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CPP_KEYWORDS = _words(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
    co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq final override import module
    """
)
CUDA_NAMES = _words(
    """
    threadIdx blockIdx blockDim gridDim warpSize dim3 uint uint2 uint3 uint4 int2 int3 int4 float2
    float3 float4 half nv_bfloat16 cudaStream_t CUtensorMap assert NULL INT_MAX UINT_MAX EOF errno
    stdin stdout stderr std cuda nvcuda pipelink int32_t uint32_t
    """
)
LANGUAGE = frozenset({"ceildiv", "min", "max", "sizeof", "sms", "clusters", "occupancy", *DTYPES})


def invalid_identifier_reason(name: str) -> str:
    """Return why the name cannot be used, "" where it can."""
    if not IDENTIFIER.fullmatch(name):
        return "use letters, digits and inner underscores, and a letter first"
    if len(name) > LONGEST:
        return f"it is longer than {LONGEST} characters"
    if "__" in name or name.startswith("pl_"):
        return "double underscores and the prefix `pl_` are reserved"
    if name in CPP_KEYWORDS:
        return "it is a C++ keyword"
    if name in CUDA_NAMES:
        return "CUDA C++ defines it"
    if name in LANGUAGE:
        return "the expression language defines it"
    return ""
