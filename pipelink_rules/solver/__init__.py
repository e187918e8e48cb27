"""The interface to the SMT solver: the only package that imports z3."""
