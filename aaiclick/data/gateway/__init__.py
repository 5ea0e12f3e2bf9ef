"""The gateway: the embedded engine served over ClickHouse's HTTP protocol.

serving          own a directory, and serve it       server           its connections and threads
exchange         one request and its answer          requests         from a request to a query
statements       the SQL that this needs to parse    outside_access   refuse files and addresses
queries          run a query, piece by piece         running_queries  what runs, and stopping it
sessions         connections with a state            formats          join the pieces of an answer
sending          when the answer is sent             faults           errors as ClickHouse reports them

http/request_reader  requests as they are read       http/replies     answers as they are written
http/codecs      compression of HTTP                 http/blocks      ClickHouse's own compression
http/multipart   forms, and tables with a query      http/cityhash    the checksum of its blocks
http/sockets     where the gateway listens
"""

from aaiclick.data.gateway.server import Gateway
from aaiclick.data.gateway.serving import Serving, serve_directory

__all__ = ["Gateway", "Serving", "serve_directory"]
