CREATE TABLE pools (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    seq INTEGER NOT NULL DEFAULT 0,
    hash BLOB NOT NULL DEFAULT x'',
    plays INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0 -- how many rows of `pending`: counting millions takes too long
) STRICT;

CREATE TABLE events (
    pool INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    ticket TEXT,
    play INTEGER,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (pool, seq)
) STRICT, WITHOUT ROWID;

-- The rule that makes repeating a call harmless.
CREATE UNIQUE INDEX events_ticket ON events (pool, ticket, kind) WHERE ticket IS NOT NULL;

CREATE INDEX events_catalogue ON events (pool, seq) WHERE kind = 'catalogue';

CREATE TABLE pending (
    pool INTEGER NOT NULL,
    play INTEGER NOT NULL,
    ticket TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (pool, play)
) STRICT, WITHOUT ROWID;

-- Clocks step back, so the order of `at` is not that of `play`, and who expires asks every second.
CREATE INDEX pending_at ON pending (pool, at);

CREATE TABLE snapshots (
    pool INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE keys (
    name TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    role TEXT NOT NULL
) STRICT, WITHOUT ROWID;
