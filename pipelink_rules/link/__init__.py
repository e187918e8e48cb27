"""Objects become one kernel: linked by the vendor's linker, read back, and compared with the plan."""
