-- The latest version of each pool, all that drawing takes, for processes that only decide. It is overwritten with every
-- batch, and nothing is lost without it: whoever finds none that fits the head follows the journal.
CREATE TABLE statepool.plays (
    pool integer PRIMARY KEY,
    body bytea NOT NULL
) WITH (fillfactor = 50);
