"""Commands of whoever operates: processes, the schema, tokens, Objects."""
