"""What does a role's code do?  Its shadow PTX, run for one warp with known control values."""
