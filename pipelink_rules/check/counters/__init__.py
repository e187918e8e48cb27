"""Counters and scratch memory between CTAs, and the order of work tiles that they establish."""
