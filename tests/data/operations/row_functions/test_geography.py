"""Places on the globe."""

from __future__ import annotations

import math
from typing import Any

import pytest

from aaiclick.data import Context, col, raw
from aaiclick.errors import DataRefused, InputError

PLACES = [
    (52.52, 13.405, 48.8566, 2.3522),
    (0.0, 0.0, 0.0, 180.0),
    (90.0, 0.0, -90.0, 0.0),
    (-33.9, 151.2, 40.7, -74.0),
]


def haversine(lat: float, lon: float, other: float, another: float) -> float:
    a, b, c, d = map(math.radians, (lat, lon, other, another))
    return (
        2
        * 6_371_000
        * math.asin(math.sqrt(math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2))
    )


async def test_distances_are_those_of_a_sphere(context: Context) -> None:
    names = ("a", "b", "c", "d")
    made = await context.create_object_from_value(dict(zip(names, map(list, zip(*PLACES, strict=True)), strict=True)))
    found = await made.select(m=col("a").geo_distance(col("b"), col("c"), col("d"))).data()
    assert found["m"] == [pytest.approx(haversine(*place), rel=0.005) for place in PLACES]


async def test_cells_have_the_names_that_everybody_uses(context: Context) -> None:
    made = await context.create_object_from_value({"lat": [57.64911, None], "lon": [10.40744, 1.0]})
    found = await made.select(g=col("lat").geohash(col("lon"), 11), h=col("lat").h3(col("lon"), 0)).data()
    assert found["g"] == ["u4pruydqqvj", None]
    assert found["h"][1] is None
    assert found["h"][0].endswith("fffffffffff")


@pytest.mark.parametrize(("lat", "lon"), [(91.0, 0.0), (0.0, 181.0), (math.nan, 0.0), (0.0, -math.inf)])
async def test_what_is_no_place_is_refused(context: Context, lat: float, lon: float) -> None:
    made = await context.create_object_from_value({"lat": [lat], "lon": [lon]})
    terms = (col("lat").geohash(col("lon")), col("lat").h3(col("lon"), 5), col("lat").geo_distance(col("lon"), 0, 0))
    for term in terms:
        with pytest.raises(DataRefused, match=r"latitudes are|Incorrect coordinates"):
            await made.select(x=term).data()


async def test_points_are_inside_of_polygons(context: Context) -> None:
    made = await context.create_object_from_value({"x": [1, 9, None], "y": [1.0, 1.0, 1.0]})
    square = [(0, 0), (3, 0), (3, 3), (0, 3)]
    assert await made.select(i=col("x").in_polygon(col("y"), square)).data() == {"i": [True, False, None]}


async def test_what_lies_under_none_is_not_looked_at(context: Context) -> None:
    made = await context.create_object_from_value([1000.0, 1.0])
    hidden = await made.select(lat=raw("nullIf(value, 1000)"))
    assert await hidden["lat"].geohash(1.0).data() == [None, "s00twy01mtw0"]


@pytest.mark.parametrize(
    "wrong",
    [
        *(lambda c: c.geohash(1.0, 13), lambda c: c.h3(1.0, 16), lambda c: c.in_polygon(1, [(0, 0)])),
        *(lambda c: c.in_polygon(1, "abc"), lambda c: c.geohash(1.0, "5")),
    ],
)
def test_constants_that_make_no_sense_are_refused_at_once(wrong: Any) -> None:
    with pytest.raises(InputError):
        wrong(col("a"))
