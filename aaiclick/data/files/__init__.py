"""Objects from files and addresses."""
