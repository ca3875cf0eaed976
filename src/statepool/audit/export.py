"""The log as off-policy packages read it: `action`, `reward`, `pscore`, `context`, `position`, and our `state` beside.

Actions are numbers in the order of their names, rewards the outcomes in the log's own unit (losses stay losses),
`context` is a single constant and `position` is 0: nothing that came after the action is handed over as context.
"""

from pathlib import Path

import numpy as np

from statepool.audit.counts import Counts, places
from statepool.audit.engines import Engine
from statepool.audit.units import Unit

FORMATS = {".parquet": "FORMAT parquet", ".csv": "FORMAT csv, HEADER"}


def export_rows(engine: Engine, counts: Counts, unit: Unit, path: Path) -> None:
    """Write every row with an outcome; without propensities the actions' shares stand in for them."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"export: {path} ends in {path.suffix!r}, expected one of {', '.join(FORMATS)}")
    import duckdb

    found = engine.fetch("SELECT action, state, loss, propensity FROM rows WHERE loss IS NOT NULL")
    action = places(found["action"], counts.actions)
    state = np.array([str(label).strip() for label in found["state"].tolist()], dtype=object)
    shares = counts.k.sum(axis=1) / counts.k.sum()
    pscore = found["propensity"].astype(np.float64) if counts.weighted is not None else shares[action]
    kept = (action >= 0) & (state != "") & (pscore > 0) & (pscore <= 1)
    columns = {
        "action": action[kept], "reward": unit.outcome(found["loss"].astype(np.float64))[kept],
        "pscore": pscore[kept], "context": np.ones(int(kept.sum())), "position": np.zeros(int(kept.sum()), np.int64),
        "state": state[kept],
    }  # fmt: skip
    with duckdb.connect() as connection:
        connection.register("arrays", columns)
        told = str(path).replace("'", "''")
        try:
            connection.execute(f"COPY (SELECT * FROM arrays) TO '{told}' ({FORMATS[path.suffix.lower()]})")
        except duckdb.Error as error:
            raise ValueError(f"export: cannot write {path} ({str(error).splitlines()[0][:120]})") from None
