ALTER TABLE statepool.pools ADD COLUMN sealed bigint NOT NULL DEFAULT 0; -- the last event that a segment holds

-- Files that hold the first events of a journal, each named by a hash.
CREATE TABLE statepool.segments (
    pool integer NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    hash bytea NOT NULL,
    digest text NOT NULL,
    place text NOT NULL,
    size bigint NOT NULL,
    PRIMARY KEY (pool, first)
);
