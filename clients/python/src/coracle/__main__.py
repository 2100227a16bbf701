"""The command ``coracle``: the binary that the wheel carries."""

import os
import sys
from typing import NoReturn

from .errors import ServeError
from .server import binary


def main() -> NoReturn:
    """Becomes the binary, with the same arguments."""
    try:
        path = str(binary())
    except ServeError as error:
        sys.exit(f"coracle: {error}")
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
