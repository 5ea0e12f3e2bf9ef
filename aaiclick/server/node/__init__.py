"""The road of workers without a database: `POST /api/v1/node/VERB`; `coordinator/http/protocol.py` describes it."""
