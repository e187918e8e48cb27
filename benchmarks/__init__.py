"""Measurements (`measure`) and validation of the checker (`validation`); run modules with -m."""
