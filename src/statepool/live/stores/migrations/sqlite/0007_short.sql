-- Events without what their bodies say: kinds as numbers, no times, tickets of decisions alone. Bodies and hashes stay.
CREATE TABLE short_events (
    pool INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    play INTEGER, -- the decision that it is of
    ticket TEXT, -- of a decision, unless it follows from `play`; the name of rows that a request brought
    body BLOB NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (pool, seq)
) STRICT, WITHOUT ROWID;

INSERT INTO short_events
SELECT pool, seq,
    CASE kind WHEN 'decision' THEN 0 WHEN 'state' THEN 1 WHEN 'outcome' THEN 2 WHEN 'expiry' THEN 3
        WHEN 'correction' THEN 4 WHEN 'refresh' THEN 5 WHEN 'rows' THEN 6 WHEN 'catalogue' THEN 7 WHEN 'erasure' THEN 8
    END,
    play, CASE WHEN kind IN ('decision', 'rows') THEN ticket END, body, hash
FROM events ORDER BY pool, seq;

DROP TABLE events;
ALTER TABLE short_events RENAME TO events;

-- The rules that make repeating a call harmless.
CREATE UNIQUE INDEX events_play ON events (pool, play, kind) WHERE play IS NOT NULL;
CREATE UNIQUE INDEX events_ticket ON events (pool, ticket, kind) WHERE ticket IS NOT NULL;

CREATE INDEX events_catalogue ON events (pool, seq) WHERE kind = 7;
