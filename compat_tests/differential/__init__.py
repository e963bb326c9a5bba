"""The same generated requests to ours and to Apache Kafka, and every answer compared field by field."""
