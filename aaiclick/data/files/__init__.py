"""Reads files and URLs into Objects, with types that are given, guessed, or the file's own."""
