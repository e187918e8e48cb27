"""From numbers to code: the entry, its parameters and its transfers, as readable CUDA."""
