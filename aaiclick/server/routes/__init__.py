"""The routes of the REST interface, one file for each thing."""
