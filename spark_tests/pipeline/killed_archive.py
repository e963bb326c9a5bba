"""A program of its own: archives a topic and kills its JVM when everything is written and nothing committed."""

from __future__ import annotations

import os
import signal
import sys
from unittest import mock

from pykafka_broker.pipeline.archive import ArchiveJob, archive
from pykafka_broker.pipeline.manifest import Manifest
from pykafka_broker.pipeline.session import pipeline_session
from pykafka_broker.pipeline.topics import Kafka


def main(bootstrap: str, topic: str, path: str, jars: str) -> None:
    with pipeline_session("local[1]", jars, {"spark.driver.memory": "512m"}) as spark:

        def die(*_: object) -> None:
            print("killed before the commit", flush=True)
            os.kill(int(spark._jvm.java.lang.ProcessHandle.current().pid()), signal.SIGKILL)
            spark.range(1).count()

        with mock.patch.object(Manifest, "commit", die):
            archive(spark, ArchiveJob(Kafka(bootstrap), (topic,), path))


if __name__ == "__main__":
    main(*sys.argv[1:])
