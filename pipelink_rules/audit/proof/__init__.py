"""The proof that a role's code performs its contract: symbolic execution in step with the body."""
