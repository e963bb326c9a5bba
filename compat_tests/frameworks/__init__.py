"""What people build on Kafka rather than call: Kafka Streams, Kafka Connect, Flink, each as its users run it."""
