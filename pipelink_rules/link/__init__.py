"""Objects become one kernel: linked, read back, and compared with the plan."""
