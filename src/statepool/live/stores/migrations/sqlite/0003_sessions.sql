-- Who has signed in to the dashboard: the hash of a session, the hash of its key, and the second it ends at.
CREATE TABLE sessions (
    hash TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row that is written again and again, to learn whether anything can be.
CREATE TABLE probes (
    id INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
