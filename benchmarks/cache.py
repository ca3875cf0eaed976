"""A cache of compiled loops for the benchmarks alone; imported before the package, which reads the variable.

The linear learner lives here, not in the package: an ordinary process that met its type in the package's cache could
not import it. The folder is keyed by the learner's source, which the package's own key does not cover.
"""

import os
import tempfile
from hashlib import sha256
from pathlib import Path

_KEY = sha256(Path(__file__).with_name("linear_exp3.py").read_bytes()).hexdigest()[:8]
FOLDER = Path(tempfile.gettempdir()) / f"statepool-benchmarks-{_KEY}"
os.environ["NUMBA_CACHE_DIR"] = str(FOLDER)
