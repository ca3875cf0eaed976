-- Decisions that are on disk and not in the journal yet: each process writes to a lane of its own, without a lock.
-- Of the last one that the journal has taken over only the hash is kept, which the next one follows from.
CREATE TABLE statepool.lanes (
    pool integer NOT NULL,
    lane bytea NOT NULL,
    place bigint NOT NULL,
    ticket text,
    at bigint NOT NULL,
    body bytea NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (pool, lane, place)
);

-- The rule that makes repeating a call harmless, among lanes ...
CREATE UNIQUE INDEX lanes_ticket ON statepool.lanes (pool, ticket) WHERE ticket IS NOT NULL;

-- Of lanes that have ended: those that have been silent for long are forgotten.
CREATE INDEX lanes_ended ON statepool.lanes (pool, at) WHERE ticket IS NULL;

-- ... and between lanes and the journal. A function that is run after the insert sees what was committed until then: had
-- the journal not taken the ticket over by then, its row in the other lane would have been in the way.
CREATE FUNCTION statepool.refuse_known_ticket() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM statepool.events WHERE pool = NEW.pool AND ticket = NEW.ticket AND kind = 'decision') THEN
        RAISE unique_violation USING CONSTRAINT = 'lanes_ticket', MESSAGE = 'the journal knows this ticket';
    END IF;
    RETURN NULL;
END $$;

-- The lane without a name is the journal's own: it claims tickets there that it is about to decide.
CREATE TRIGGER lanes_known AFTER INSERT ON statepool.lanes
    FOR EACH ROW WHEN (NEW.ticket IS NOT NULL AND NEW.lane <> '') EXECUTE FUNCTION statepool.refuse_known_ticket();
