"""The rows of the catalogue, one module a family (design: families of codes)."""
