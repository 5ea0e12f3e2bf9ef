"""ClickHouse's types: from Python and Arrow, exactly or not at all."""
