"""What kernels, the launcher and the build cost: docs/results.md."""
