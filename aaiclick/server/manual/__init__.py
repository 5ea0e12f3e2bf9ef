"""The pages of the manual that are printed from routes and tools."""
