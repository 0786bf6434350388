"""Compiled code is cached by the engine's sources.

numba looks for changes only in the file of the function that Python calls, not in those of the
routines compiled into it: after an edit its usual cache would go on with the old code.
"""

import hashlib
import os
from pathlib import Path

from hypothesis import settings

# The same examples in every run; `make test-portable` chooses seeds. No example is timed.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("seeded", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("fixed")

ENGINE = Path(__file__).parents[1] / "src" / "metrack" / "engine"

if "NUMBA_CACHE_DIR" not in os.environ:
    sources = b"".join(path.read_bytes() for path in sorted(ENGINE.glob("*.py")))
    cache = ENGINE / "__pycache__" / hashlib.sha1(sources).hexdigest()[:12]
    os.environ["NUMBA_CACHE_DIR"] = str(cache)
