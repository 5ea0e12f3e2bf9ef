"""The eight queries of `benchmarks.tpch`, with the verbs of Ibis; imported in the peers' environment alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import ibis
from ibis import _

Tables = Mapping[str, Any]


def _revenue() -> Any:
    return _.l_extendedprice * (1 - _.l_discount)


def q1(t: Tables) -> Any:
    shipped = t["lineitem"].filter(_.l_shipdate <= date(1998, 9, 2))
    return (
        shipped.group_by("l_returnflag", "l_linestatus")
        .agg(
            sum_qty=_.l_quantity.sum(),
            sum_base_price=_.l_extendedprice.sum(),
            sum_disc_price=_revenue().sum(),
            sum_charge=(_revenue() * (1 + _.l_tax)).sum(),
            avg_qty=_.l_quantity.mean(),
            avg_price=_.l_extendedprice.mean(),
            avg_disc=_.l_discount.mean(),
            count_order=_.count(),
        )
        .order_by("l_returnflag", "l_linestatus")
    )


def q3(t: Tables) -> Any:
    customers = t["customer"].filter(_.c_mktsegment == "BUILDING")
    orders = t["orders"].filter(_.o_orderdate < date(1995, 3, 15))
    items = t["lineitem"].filter(_.l_shipdate > date(1995, 3, 15))
    joined = customers.join(orders, [("c_custkey", "o_custkey")]).join(items, [("o_orderkey", "l_orderkey")])
    totals = joined.group_by("o_orderkey", "o_orderdate", "o_shippriority").agg(revenue=_revenue().sum())
    return totals.order_by(ibis.desc("revenue"), "o_orderdate").limit(10)


def q5(t: Tables) -> Any:
    orders = t["orders"].filter(_.o_orderdate >= date(1994, 1, 1), _.o_orderdate < date(1995, 1, 1))
    joined = (
        t["customer"]
        .join(orders, [("c_custkey", "o_custkey")])
        .join(t["lineitem"], [("o_orderkey", "l_orderkey")])
        .join(t["supplier"], [("l_suppkey", "s_suppkey"), ("c_nationkey", "s_nationkey")])
        .join(t["nation"], [("c_nationkey", "n_nationkey")])
        .join(t["region"].filter(_.r_name == "ASIA"), [("n_regionkey", "r_regionkey")])
    )
    return joined.group_by("n_name").agg(revenue=_revenue().sum()).order_by(ibis.desc("revenue"))


def q6(t: Tables) -> Any:
    items = t["lineitem"].filter(
        _.l_shipdate >= date(1994, 1, 1),
        _.l_shipdate < date(1995, 1, 1),
        _.l_discount >= ibis.literal(Decimal("0.05"), "decimal(15, 2)"),
        _.l_discount <= ibis.literal(Decimal("0.07"), "decimal(15, 2)"),
        _.l_quantity < 24,
    )
    return items.agg(revenue=(_.l_extendedprice * _.l_discount).sum())


def q10(t: Tables) -> Any:
    orders = t["orders"].filter(_.o_orderdate >= date(1993, 10, 1), _.o_orderdate < date(1994, 1, 1))
    joined = (
        t["customer"]
        .join(orders, [("c_custkey", "o_custkey")])
        .join(t["lineitem"].filter(_.l_returnflag == "R"), [("o_orderkey", "l_orderkey")])
        .join(t["nation"], [("c_nationkey", "n_nationkey")])
    )
    keys = ("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment")
    totals = joined.group_by(*keys).agg(revenue=_revenue().sum())
    return totals.order_by(ibis.desc("revenue"), "c_custkey").limit(20)


def q12(t: Tables) -> Any:
    items = t["lineitem"].filter(
        _.l_shipmode.isin(["MAIL", "SHIP"]),
        _.l_commitdate < _.l_receiptdate,
        _.l_shipdate < _.l_commitdate,
        _.l_receiptdate >= date(1994, 1, 1),
        _.l_receiptdate < date(1995, 1, 1),
    )
    high = _.o_orderpriority.isin(["1-URGENT", "2-HIGH"])
    joined = t["orders"].join(items, [("o_orderkey", "l_orderkey")])
    counts = joined.group_by("l_shipmode").agg(
        high_line_count=high.ifelse(1, 0).sum(), low_line_count=high.ifelse(0, 1).sum()
    )
    return counts.order_by("l_shipmode")


def q14(t: Tables) -> Any:
    items = t["lineitem"].filter(_.l_shipdate >= date(1995, 9, 1), _.l_shipdate < date(1995, 10, 1))
    joined = items.join(t["part"], [("l_partkey", "p_partkey")])
    promo = _.p_type.startswith("PROMO").ifelse(_revenue(), 0)
    return joined.agg(promo=promo.sum(), revenue=_revenue().sum())


def q18(t: Tables) -> Any:
    large = t["lineitem"].group_by("l_orderkey").agg(quantity=_.l_quantity.sum()).filter(_.quantity > 300)
    orders = t["orders"].filter(_.o_orderkey.isin(large.l_orderkey))
    joined = (
        t["customer"].join(orders, [("c_custkey", "o_custkey")]).join(t["lineitem"], [("o_orderkey", "l_orderkey")])
    )
    keys = ("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice")
    totals = joined.group_by(*keys).agg(quantity=_.l_quantity.sum())
    return totals.order_by(ibis.desc("o_totalprice"), "o_orderdate", "o_orderkey").limit(100)


QUERIES: dict[str, Callable[[Tables], Any]] = {
    "Q1": q1,
    "Q3": q3,
    "Q5": q5,
    "Q6": q6,
    "Q10": q10,
    "Q12": q12,
    "Q14": q14,
    "Q18": q18,
}
