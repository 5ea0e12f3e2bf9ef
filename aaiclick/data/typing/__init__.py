"""ClickHouse's types, and the conversion of Python and Arrow values to them: exact or refused."""
