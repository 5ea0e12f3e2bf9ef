"""The front door as tools for agents, by the Model Context Protocol.

The functions and answers are those of REST; here they get descriptions for whoever debugs a failed job, and bounds.
Only the server's application imports this: it needs the extra `server`.
"""
