"""Which CUDA toolkit builds: found, probed by really linking, and fingerprinted."""
