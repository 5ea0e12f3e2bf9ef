"""Settings of installations on several machines: servers and who asks them, stores of logs, what may be called."""

from __future__ import annotations

from aaiclick.config_setting import Setting, whole

FLEET: tuple[Setting, ...] = (
    Setting(
        "AAICLICK_COORDINATOR_URL",
        "coordinator_urls",
        "none",
        "The servers that coordinate: with it, workers and what they run ask these, and open no database of the state.",
        "addresses of servers with commas, such as https://a.example.com:8765,https://b.example.com:8765",
    ),
    Setting(
        "AAICLICK_API_URL",
        "api_url",
        "none",
        "The server that commands and `aaiclick.client` ask: with it, commands open no database.",
        "the address of a server, such as https://aaiclick.example.com:8765",
    ),
    Setting(
        "AAICLICK_API_TOKEN",
        "api_token",
        "none",
        "The token with which the servers in AAICLICK_COORDINATOR_URL and AAICLICK_API_URL are asked, and what a"
        " replica copies.",
        "a token as `aaiclick token create` shows it",
    ),
    Setting("AAICLICK_API_CERT", "api_cert", "none", "This machine's certificate and key, in one file.", "a file"),
    Setting(
        "AAICLICK_NODE_CH_URL",
        "node_ch_url",
        "as AAICLICK_CH_URL",
        "At a server: where it sends the statements of nodes that have no ClickHouse; name a restricted user.",
        "clickhouse://user:password@host:port/database; several hosts with commas",
    ),
    Setting(
        "AAICLICK_LOG_STORE",
        "log_store",
        "the directory in AAICLICK_LOG_DIR",
        "Where the logs of tasks are kept, the same on all machines: workers send their logs there while tasks run, and"
        " servers read them there. Workers with AAICLICK_COORDINATOR_URL send theirs to the server instead.",
        "a directory that all machines share, or s3://bucket/prefix (extra s3; credentials as in AWS_*)",
    ),
    Setting(
        "AAICLICK_ENTRYPOINT_PREFIXES",
        "entrypoint_prefixes",
        "none: nothing new can be run through the server",
        "Packages, modules and single functions whose tasks and jobs may be run and registered through the server. "
        "`shell:` lets it run any command, `rest:` call any address that the rules for these allow.",
        "importable names, and names of executors with a colon, separated by commas",
    ),
    Setting(
        "AAICLICK_EXECUTORS",
        "executors",
        "all that are installed",
        "The executors that workers offer.",
        "names such as python, shell and rest, separated by commas",
    ),
    Setting(
        "AAICLICK_RESOURCES",
        "resources",
        "processors, memory and GPUs, as far as they are found",
        "What the machine of a worker can grant to tasks, in addition to what is found or instead of it.",
        "amounts by name, such as gpu=2,gpu_memory_mb=24000,licence:abaqus=1",
    ),
    Setting(
        "AAICLICK_NODE_NAME",
        "node_name",
        "the host's name",
        "What workers call their machine; `--node-name` goes over it.",
        "a name, which machines do not share",
    ),
    Setting("AAICLICK_NODE_POOL", "node_pool", "none", "The pool of this machine; `--pool` goes over it.", "a name"),
    Setting(
        "AAICLICK_NODE_LABELS",
        "node_labels",
        "none",
        "Labels of this machine, beside those that `--label` adds.",
        "names separated by commas, such as fast-disk,rack-7",
    ),
    Setting(
        "AAICLICK_NODE_CAPABILITIES",
        "node_capabilities",
        "none",
        "What this machine has, over what workers find out; `--capability` goes over it.",
        "name=value, separated by commas, such as gpu=amd,memory_gb=64",
    ),
    Setting(
        "AAICLICK_REST_ALLOW",
        "rest_allow",
        "none",
        "Hosts and networks that the executor `rest` may call although they are not public; see the guide.",
        "host names, IP addresses and networks such as 10.0.0.0/8, separated by commas",
    ),
    Setting(
        "AAICLICK_SERVER_URL",
        "server_url",
        "none",
        "The server's address as others reach it, for callbacks.",
        "an address that begins with http:// or https://",
    ),
    Setting(
        "AAICLICK_SERVER_HOSTS",
        "server_hosts",
        "localhost, 127.0.0.1 and ::1",
        "Additional host names of the server, as browsers write them; other names are refused (DNS rebinding).",
        "host names, each with a port or without, separated by commas",
    ),
    Setting(
        "AAICLICK_REDIS_URL",
        "redis_url",
        "none",
        "A Redis (extra redis) that carries wake-ups between processes, with any database; the same for all of them.",
        "redis://user:password@host:port/database; rediss:// with TLS; "
        "redis+sentinel://host:port,host:port/service or rediss+sentinel:// behind Sentinels",
    ),
    Setting(
        "AAICLICK_REDIS_PREFIX",
        "redis_prefix",
        "stream:orchestrator:",
        "What the names of streams begin with: installations that share a database of a Redis need one each.",
        "up to 100 letters, digits and _ . : - { }",
    ),
    whole(
        "AAICLICK_REDIS_INGEST",
        "redis_ingest",
        "0",
        "1: entries that other programs add to inbound streams of that Redis become jobs and orders; see the guide.",
        (0, 1),
    ),
    whole(
        "ORCH_CLAIM_IDLE_MS",
        "claim_idle_ms",
        "60000",
        "Milliseconds after which an entry of an inbound stream that was read and not acknowledged is taken over.",
        (100, 86_400_000),
    ),
    whole(
        "AAICLICK_LOG_SPOOL_MB",
        "log_spool_mb",
        "1000",
        "Megabytes of logs that a worker keeps on its disk until they have been sent; beyond that, output is left out.",
        (1, 1_000_000),
    ),
)
