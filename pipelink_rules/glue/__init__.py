"""Glue: the generated CUDA entry of a megakernel, its parameters and its transfers."""
