"""What is shown of jobs, tasks, workers and all else: one definition for REST, MCP and the command line.

Each thing has a file: a TypedDict with the fields, and a function that fills it from what the front door gives. All is
plain JSON data: ids and times are texts. The server's OpenAPI document and the schemas of its tools are made from the
same TypedDicts. Nothing heavy is imported here, and no pydantic: commands have to start fast.
"""
