-- Files of segments that are no part of the journal: being written since `at`, or, where that is negative, to be removed.
CREATE TABLE statepool.loose (
    pool integer NOT NULL,
    digest text NOT NULL,
    place text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (pool, digest)
);
