"""What the linker made: the manifest for the launcher, the map for people, comparisons, tables."""
