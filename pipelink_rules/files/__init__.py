"""Files of the stages: atomic writing, and dataclasses as canonical JSON."""
