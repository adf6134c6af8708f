"""MPI-style collectives along the links of a torus.

The package has the command ``hopbine`` and the library that serves the collectives of an unchanged MPI program, for
``LD_PRELOAD``; ``python -m hopbine`` prints where that is.
"""

from importlib.metadata import version
from pathlib import Path

__all__ = ["__version__", "preload_library"]

__version__ = version("hopbine")


def preload_library() -> str:
    """The path of the library to preload.

    Raises FileNotFoundError if the package was built without it: packages/python/build.sh builds it.
    """
    path = Path(__file__).parent / "lib" / "libhopbine_preload.so"
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}: this hopbine was built without an MPI (packages/python/build.sh)")
    return str(path)
