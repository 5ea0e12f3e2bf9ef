"""The gateway: the embedded engine served over ClickHouse's HTTP protocol.

wire      a request as it comes in           replies   an answer as it goes out
codecs    compression of HTTP, both ways     blocks    compression of ClickHouse's own, with its
multipart forms, and tables with a query     cityhash  checksum
requests  from a request to a query          statements  as much of SQL as that takes
queries   running it, piece by piece         formats   making one document of the pieces
sessions  connections that remember          running   what runs, and stopping it
exchange  one request and its answer         sending   when the answer leaves
reach     what reaches files and addresses   server    its connections and threads
sockets   where it listens                   serving   owning a directory, and serving it
"""

from aaiclick.data.gateway.server import Gateway
from aaiclick.data.gateway.serving import Serving, serve_directory

__all__ = ["Gateway", "Serving", "serve_directory"]
