"""What is in the wheel: run in an environment that has it installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from conftest import PATIENCE

import coracle
from coracle.schema import SCHEMA_PATH

ROOT = Path(__file__).parents[3]


def test_what_is_tested_is_the_wheel() -> None:
    assert Path(sys.prefix) in Path(coracle.__file__).parents


def test_the_schema_is_the_servers() -> None:
    assert SCHEMA_PATH.read_bytes() == (ROOT / "schema" / "coracle.capnp").read_bytes()


def test_version_and_licence_are_the_repositorys() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert version[1] == coracle.__version__ == metadata.version("coracle")
    package = metadata.distribution("coracle")
    licence = next(file for file in package.files or [] if file.name == "LICENSE")
    assert licence.read_text() == (ROOT / "LICENSE").read_text()


def test_it_is_typed_and_carries_the_server() -> None:
    folder = Path(coracle.__file__).parent
    assert (folder / "py.typed").exists()
    assert (folder / "bin" / "coracle").stat().st_mode & 0o111


def programs(document: Path) -> list[str]:
    """The examples of a document that are whole programs."""
    examples = re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    return [example for example in examples if "asyncio.run(" in example]


PROGRAMS = programs(ROOT / "README.md") + programs(ROOT / "clients" / "python" / "README.md")


SAID = ["1.5\n", "Lisbon: 21.5 °C", "making the code\nada is number 1\ngrace is number 2\n", "42\n", "{'rpcMethod': 'run'} ok"]


@pytest.mark.parametrize(("program", "said"), list(zip(PROGRAMS, SAID, strict=True)), ids=SAID)
def test_the_programs_in_the_documents_run(program: str, said: str) -> None:
    environment = {**os.environ, "PYTHONUTF8": "1"}
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, timeout=PATIENCE)
    assert ended.returncode == 0 and said in ended.stdout, ended.stderr


def test_the_example_in_the_repository_runs() -> None:
    example = ROOT / "examples" / "python" / "hello.py"
    ended = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=PATIENCE)
    assert ended.stdout.startswith("3.5, ") and ended.stdout.endswith("RangeError: there is no anchor\n"), ended.stderr


def test_everything_public_has_a_docstring() -> None:
    for name in coracle.__all__:
        exported = getattr(coracle, name)
        if isinstance(exported, type) and exported.__module__.startswith("coracle"):
            assert exported.__doc__, name
            members = vars(exported).items()
            missing = [
                member for member, value in members if not member.startswith("_") and callable(value) and not value.__doc__
            ]
            assert not missing, (name, missing)
