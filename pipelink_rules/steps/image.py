"""The steps that make the result: link and audit, manifest and map."""

from __future__ import annotations

from dataclasses import dataclass

from pipelink_rules.toolkit.toolkit import Toolkit


@dataclass(frozen=True)
class LinkRequest:
    """A link.  Paths are relative to the top."""

    objects: tuple[str, ...]
    sidecars: tuple[str, ...]
    program: str
    placement: str
    arch: str
    backend: str
    build: str
    cubin: str
    audit: str
    times: str


def link_image(request: LinkRequest, toolkit: Toolkit) -> None:
    raise NotImplementedError


def describe_image(
    program: str, placement: str, audit: str, cubin: str, runtime: str, manifest: str, map_out: str
) -> None:
    raise NotImplementedError
