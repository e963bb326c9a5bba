"""Consumer groups as real clients live in them; the programs are in compat_tests/harness."""
