"""Sockets and frames: bytes in, requests in order, responses out. What the bytes mean is handed in as a dispatch."""
