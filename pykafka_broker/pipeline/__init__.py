"""Pipelines on Spark around a broker: archive, replay, audit, aggregate, retry, and a reader of log segments.

Needs the extra `spark`. Nothing here touches a running broker except as any client would.
"""
