"""CUDA toolkits and what runs and reads their tools."""
