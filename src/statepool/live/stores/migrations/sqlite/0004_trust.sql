ALTER TABLE keys ADD COLUMN until INTEGER; -- the second it ends at; NULL: never
ALTER TABLE keys ADD COLUMN pools TEXT NOT NULL DEFAULT ''; -- the pools it is for, with spaces between; '': all

-- What was changed from outside, by whom: the latest calls that took an administrator.
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    address TEXT NOT NULL,
    did TEXT NOT NULL,
    status INTEGER NOT NULL,
    said TEXT NOT NULL
) STRICT;
