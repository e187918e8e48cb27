"""One function per node of the build: files in, files out.  Used by SCons and the CLI alike."""
