-- Who has signed in to the dashboard: the hash of a session, the hash of its key, and the second it ends at.
CREATE TABLE statepool.sessions (
    hash text PRIMARY KEY,
    key text NOT NULL,
    until bigint NOT NULL
);

-- One row that is written again and again, to learn whether anything can be.
CREATE TABLE statepool.probes (
    id integer PRIMARY KEY,
    body bytea NOT NULL
);
