"""``python -m hopbine`` prints the path of the library to preload."""

import sys

from . import preload_library

try:
    print(preload_library())
except FileNotFoundError as error:
    sys.exit(str(error))
