"""`format("kafka-segments")`: log segments read straight from disk, without a broker."""
