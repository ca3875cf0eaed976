CREATE TABLE statepool.pools (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    seq bigint NOT NULL DEFAULT 0,
    hash bytea NOT NULL DEFAULT '',
    plays bigint NOT NULL DEFAULT 0,
    pending bigint NOT NULL DEFAULT 0 -- how many rows of `pending`: counting millions takes too long
) WITH (fillfactor = 20); -- every batch rewrites its row: room to do so in place

CREATE TABLE statepool.events (
    pool integer NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    ticket text,
    play bigint,
    at bigint NOT NULL,
    body bytea NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (pool, seq)
);

-- The rule that makes repeating a call harmless.
CREATE UNIQUE INDEX events_ticket ON statepool.events (pool, ticket, kind) WHERE ticket IS NOT NULL;

CREATE INDEX events_catalogue ON statepool.events (pool, seq) WHERE kind = 'catalogue';

CREATE TABLE statepool.pending (
    pool integer NOT NULL,
    play bigint NOT NULL,
    ticket text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (pool, play)
);

-- Clocks step back, so the order of `at` is not that of `play`, and who expires asks every second.
CREATE INDEX pending_at ON statepool.pending (pool, at);

CREATE TABLE statepool.snapshots (
    pool integer PRIMARY KEY,
    seq bigint NOT NULL,
    body bytea NOT NULL
);

CREATE TABLE statepool.keys (
    name text PRIMARY KEY,
    hash text NOT NULL,
    role text NOT NULL
);
