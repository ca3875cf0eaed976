ALTER TABLE pools ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0; -- the last event that a segment holds

-- Files that hold the first events of a journal, each named by a hash.
CREATE TABLE segments (
    pool INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    hash BLOB NOT NULL,
    digest TEXT NOT NULL,
    place TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (pool, first)
) STRICT, WITHOUT ROWID;
