"""Contracts: text to nouns, parameters bound, nouns to sidecars."""
