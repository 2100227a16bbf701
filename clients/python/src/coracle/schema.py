"""The wire's schema, as the server has it: schema/coracle.capnp, of which this package carries a copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import capnp

SCHEMA_PATH: Final = Path(__file__).with_name("coracle.capnp")

wire: Final[Any] = capnp.load(str(SCHEMA_PATH))
"""The schema's interfaces and structs. They have no types that Python's checkers know."""
