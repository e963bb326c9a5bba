"""The broker and Apache Kafka measured side by side, in one run: `python -m benchmarks --help`."""
