-- Events without what their bodies say: kinds as numbers, no times, tickets of decisions alone. Bodies and hashes stay.
CREATE TABLE statepool.short_events (
    pool integer NOT NULL,
    kind smallint NOT NULL,
    seq bigint NOT NULL,
    play bigint, -- the decision that it is of
    ticket text, -- of a decision, unless it follows from `play`; the name of rows that a request brought
    body bytea NOT NULL,
    hash bytea NOT NULL
);

INSERT INTO statepool.short_events (pool, seq, kind, play, ticket, body, hash)
SELECT pool, seq,
    CASE kind WHEN 'decision' THEN 0 WHEN 'state' THEN 1 WHEN 'outcome' THEN 2 WHEN 'expiry' THEN 3
        WHEN 'correction' THEN 4 WHEN 'refresh' THEN 5 WHEN 'rows' THEN 6 WHEN 'catalogue' THEN 7 WHEN 'erasure' THEN 8
    END,
    play, CASE WHEN kind IN ('decision', 'rows') THEN ticket END, body, hash
FROM statepool.events ORDER BY pool, seq;

DROP TABLE statepool.events;
ALTER TABLE statepool.short_events RENAME TO events;
ALTER TABLE statepool.events ADD PRIMARY KEY (pool, seq);

-- The rules that make repeating a call harmless.
CREATE UNIQUE INDEX events_play ON statepool.events (pool, play, kind) WHERE play IS NOT NULL;
CREATE UNIQUE INDEX events_ticket ON statepool.events (pool, ticket, kind) WHERE ticket IS NOT NULL;

CREATE INDEX events_catalogue ON statepool.events (pool, seq) WHERE kind = 7;

CREATE OR REPLACE FUNCTION statepool.refuse_known_ticket() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM statepool.events WHERE pool = NEW.pool AND ticket = NEW.ticket AND kind = 0) THEN
        RAISE unique_violation USING CONSTRAINT = 'lanes_ticket', MESSAGE = 'the journal knows this ticket';
    END IF;
    RETURN NULL;
END $$;
