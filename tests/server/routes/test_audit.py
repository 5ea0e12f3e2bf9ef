"""Who changed what, over HTTP."""

from __future__ import annotations

from tests.server.conftest import Client


async def test_changes_are_told_to_admins_in_pages(each_client: Client) -> None:
    for number in range(1, 4):
        await each_client.post(f"/jobs/{number}/cancel", headers=each_client.of("operator"))
    first = (await each_client.get("/audit", params={"limit": 2})).json()
    rest = (await each_client.get("/audit", params={"before": first["next"]})).json()
    targets = [entry["target"] for entry in (*first["entries"], *rest["entries"])][:3]
    assert targets == ["job 3", "job 2", "job 1"]
    newest = first["entries"][0]
    assert (newest["actor"], newest["verb"]) == ("operator", "cancel")
    assert newest["outcome"].startswith("refused: NotFound")
