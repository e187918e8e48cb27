"""May a program be linked?  Every rule about how components fit together."""
