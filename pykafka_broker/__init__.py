"""A Kafka broker in Python."""
