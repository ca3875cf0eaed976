-- Files of segments that are no part of the journal: being written since `at`, or, where that is negative, to be removed.
CREATE TABLE loose (
    pool INTEGER NOT NULL,
    digest TEXT NOT NULL,
    place TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (pool, digest)
) STRICT, WITHOUT ROWID;
