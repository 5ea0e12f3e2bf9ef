"""Functions of places on the globe, given as degrees of latitude and longitude."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aaiclick.data.operations.operation import Applied, Operation, check_kind, made
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import FLOAT, TEXT, Kind, Typing, Worded, like
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import null_or
from aaiclick.errors import InputError
from aaiclick.urls import shown

_NOWHERE = quoting.text("a place is refused: latitudes are from -90 to 90, longitudes from -180 to 180")


def _checked(words: str, kind: Type, *pairs: tuple[int, int]) -> Typing:
    """Return a typing that converts arguments to floats and checks each (latitude, longitude) pair of positions."""

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        if None in kinds:
            return None
        outside = " OR ".join(
            f"NOT (toFloat64({{{lat}}}) BETWEEN -90 AND 90 AND toFloat64({{{lon}}}) BETWEEN -180 AND 180)"
            for lat, lon in pairs
        )
        text = words
        for place in range(len(kinds)):
            text = text.replace(f"{{{place}}}", f"toFloat64({{{place}}})")
        return Worded(null_or(f"if(throwIf({outside}, {_NOWHERE}) = 0, {text}, {text})", kinds), like(kind, *kinds))

    return typing


def geo_distance(longitude: object, other_latitude: object, other_longitude: object) -> Applied:
    """Return the metres along the great circle between two places; the globe is taken for a sphere."""
    words = "greatCircleDistance({1}, {0}, {3}, {2})"
    return Applied(
        Operation(words, 4, 4, typed=_checked(words, FLOAT, (0, 1), (2, 3))),
        (longitude, other_latitude, other_longitude),
    )


def geohash(longitude: object, precision: int = 12) -> Applied:
    """Return the geohash, `precision` characters long, of a latitude and longitude."""
    size = check_kind("geohash", precision, int, "the precision must be a whole number")
    if not 1 <= size <= 12:
        raise InputError(field="precision", value=str(size), rule="it must be from 1 to 12", hint="")
    words = f"geohashEncode({{1}}, {{0}}, {size})"
    return Applied(Operation(words, 2, 2, typed=_checked(words, TEXT, (0, 1))), (longitude,))


def h3(longitude: object, resolution: int) -> Applied:
    size = check_kind("h3", resolution, int, "the resolution must be a whole number")
    if not 0 <= size <= 15:
        raise InputError(field="resolution", value=str(size), rule="it must be from 0 to 15", hint="")
    words = f"h3ToString(geoToH3({{0}}, {{1}}, {size}))"
    return Applied(Operation(words, 2, 2, typed=_checked(words, TEXT, (0, 1))), (longitude,))


def in_polygon(y: object, corners: object) -> Applied:
    """Return whether the point (x, y) lies inside a polygon, given by the (x, y) of its corners; called on x."""
    known = [_corner(each) for each in corners] if isinstance(corners, Sequence) else []
    if len(known) < 3:
        raise InputError(
            field="in_polygon", value=shown(repr(corners)), rule="it needs at least three corners", hint=""
        )
    listed = ", ".join(f"({quoting.literal(x)}, {quoting.literal(y)})" for x, y in known)
    words = f"toBool(pointInPolygon((toFloat64({{0}}), toFloat64({{1}})), [{listed}]))"

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        return None if None in kinds else Worded(null_or(words, kinds), like(Type("Bool"), *kinds))

    return Applied(Operation(words, 2, 2, truth=True, typed=typing), (y,))


def _corner(given: Any) -> tuple[float, float]:
    try:
        x, y = given
        return float(x), float(y)
    except (TypeError, ValueError):
        rule = "each corner must be a pair (x, y) of numbers"
        raise InputError(field="in_polygon", value=shown(repr(given)), rule=rule, hint="") from None


_BERLIN = '{"lat": [52.52], "lon": [13.405]}'

GEOGRAPHY = {
    "geo_distance": made(
        geo_distance,
        "metres along the great circle to another place: called on the latitude, with longitude, latitude, longitude",
        _BERLIN,
        'col("lat").geo_distance(col("lon"), 48.8566, 2.3522).round(-3)',
        "[879000.0]",
    ),
    "geohash": made(
        geohash,
        "the geohash of the place, with this many characters",
        _BERLIN,
        'col("lat").geohash(col("lon"), 5)',
        '["u33dc"]',
    ),
    "h3": made(
        h3, "the H3 cell of the place, at a resolution", _BERLIN, 'col("lat").h3(col("lon"), 5)', '["851f1d4bfffffff"]'
    ),
    "in_polygon": made(
        in_polygon,
        "whether the point (x, y) is inside a polygon",
        '{"x": [1, 9], "y": [1, 1]}',
        'col("x").in_polygon(col("y"), [(0, 0), (3, 0), (3, 3), (0, 3)])',
        "[True, False]",
    ),
}
