"""`aaiclick metrics`: the numbers that monitoring asks for."""

from __future__ import annotations

from aaiclick.cli.afar import afar, refuse
from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, show_json, show_text


def metrics(as_json: AsJson = False) -> None:
    """Print the metrics, in the text format of Prometheus."""
    if (api := afar()) is not None:
        if as_json:
            refuse("aaiclick metrics --json", "a server gives them as a text")
        show_text(wait_for(api.metrics()).rstrip("\n"))
        return
    from aaiclick.orchestration.queries.metrics import collect_metrics, to_text  # here, to keep start-up light
    from aaiclick.representations.metrics import metrics_numbers  # here, to keep start-up light

    found = wait_for(collect_metrics())
    if as_json:
        show_json(metrics_numbers(found))
    else:
        show_text(to_text(found).rstrip("\n"))
