"""What the linker says to its users: stable codes, diagnostics, their text and JSON forms."""
