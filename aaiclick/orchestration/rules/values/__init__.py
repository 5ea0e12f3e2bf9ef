"""Values as JSON, exactly or refused."""
