"""The partitions this broker holds, their roles, and who waits for them."""
