"""PipeLink: a linker for GPU kernel components."""

__version__ = "0.1.0"
