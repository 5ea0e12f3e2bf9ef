"""Numbers, exactly or refused."""
