"""Runs queries and reads their answers: as Python values, Arrow, files or text."""
