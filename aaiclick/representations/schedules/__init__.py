"""What is shown of the catalogue, its schedules and backfills."""
