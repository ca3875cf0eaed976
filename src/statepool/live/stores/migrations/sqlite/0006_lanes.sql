-- Decisions of a store that was restored from one with many writers, which are not in the journal yet.
CREATE TABLE lanes (
    pool INTEGER NOT NULL,
    lane BLOB NOT NULL,
    place INTEGER NOT NULL,
    ticket TEXT,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (pool, lane, place)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX lanes_ticket ON lanes (pool, ticket) WHERE ticket IS NOT NULL;
