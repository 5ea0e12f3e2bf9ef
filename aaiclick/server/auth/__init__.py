"""Authentication and authorization of requests: tokens and roles, quotas per token, and counts of refusals."""
