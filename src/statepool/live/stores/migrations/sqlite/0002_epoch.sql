ALTER TABLE pools ADD COLUMN epoch BLOB NOT NULL DEFAULT x''; -- of the process that made the latest version
