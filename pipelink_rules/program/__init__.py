"""From a declaration and its components' interfaces to a program: resolved, nothing placed."""
