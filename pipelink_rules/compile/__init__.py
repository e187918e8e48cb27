"""Compiles a component: objects, restrictions on its code, register probe."""
