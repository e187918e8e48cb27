"""The protocol of a program: who waits for whom, and which memory is reused when."""
