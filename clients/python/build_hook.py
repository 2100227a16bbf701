"""Puts the server's binary into the wheel and names the platform that it runs on.

The binary is $CORACLE_WHEEL_BINARY; `build` beside this file sets it. Without one the wheel is for any platform and has no server.
"""

import os
import re
import struct
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MACHINES = {62: "x86_64", 183: "aarch64"}


class ServerHook(BuildHookInterface[Any]):
    """See the module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds. An editable install uses the checkout, where there is no binary."""
        binary = os.environ.get("CORACLE_WHEEL_BINARY")
        if version != "standard" or not binary:
            return
        build_data["force_include"][str(Path(binary).resolve())] = "coracle/bin/coracle"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(Path(binary).read_bytes())}"


def platform_tag(program: bytes) -> str:
    """The platform of a program for Linux and glibc: its machine, and the newest glibc version that it asks for."""
    if program[:5] != b"\x7fELF\x02":
        raise ValueError("the binary is no 64-bit ELF program")
    (machine,) = struct.unpack_from("<H", program, 18)
    if machine not in MACHINES:
        raise ValueError(f"the binary is for the machine {machine}, which has no name here")
    versions = [tuple(map(int, found)) for found in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", program)]
    if not versions:
        raise ValueError("the binary asks for no version of glibc")
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{MACHINES[machine]}"
