"""Checks of contracts against each other, before anything is compiled."""
