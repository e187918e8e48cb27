"""Compares the code of each role with its contract: shadow PTX, interpreted lane by lane."""
