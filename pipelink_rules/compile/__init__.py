"""One component becomes one object: compiled, scanned, probed, and described by its sidecar."""
