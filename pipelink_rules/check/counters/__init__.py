"""Counters and scratch memory between CTAs: the order of work items that they make."""
