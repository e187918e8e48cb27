"""The nouns of the linker: frozen dataclasses without I/O and without third-party imports."""
