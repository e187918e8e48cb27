"""Links objects and audits the kernel: link inputs, linker backends, cubins, twins."""
