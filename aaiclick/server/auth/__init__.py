"""Who asks, and what they may: tokens, quotas, refusals."""
