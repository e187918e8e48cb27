"""A hand-written fused GEMM to compare with."""
