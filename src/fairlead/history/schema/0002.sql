-- What a namespace keeps for its whole life, as the store has it: limits, declarations, API keys and so on. It comes back with them.

CREATE TABLE definitions (
  namespace INTEGER NOT NULL,
  kind TEXT NOT NULL,       -- limits, keys, hashes or sets
  name TEXT NOT NULL,       -- of the limit, the API key or the key in the store
  content BYTES NOT NULL,   -- its fields, or its members with their scores, packed
  PRIMARY KEY (namespace, kind, name)
);
