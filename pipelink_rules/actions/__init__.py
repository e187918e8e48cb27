"""Build actions, shared by SCons and the CLI: each function maps files to files."""
