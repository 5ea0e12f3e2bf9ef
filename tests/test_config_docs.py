"""The table of settings and the page made from it."""

import dataclasses
from pathlib import Path

from aaiclick.config import Settings
from aaiclick.config_docs import SETTINGS, settings_markdown

PROJECT = Path(__file__).parents[1]


def test_every_field_is_in_the_table_and_every_row_has_a_field():
    fields = {field.name for field in dataclasses.fields(Settings)}
    assert fields == {setting.field for setting in SETTINGS}
    assert all(setting.default and setting.rule and setting.meaning for setting in SETTINGS)


def test_the_page_of_the_manual_is_up_to_date():
    page = (PROJECT / "docs" / "reference" / "settings.md").read_text()
    assert page == settings_markdown(), "run: python -m aaiclick.config_docs > docs/reference/settings.md"
