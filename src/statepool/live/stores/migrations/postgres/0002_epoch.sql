ALTER TABLE statepool.pools ADD COLUMN epoch bytea NOT NULL DEFAULT ''; -- of the process that made the latest version
