"""Eight queries of TPC-H with our verbs, and as one would write them by hand.

The texts are in the SQL that ClickHouse and DuckDB both read, so that another engine can say what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal

from aaiclick.data import Frame, Term, col

Tables = Mapping[str, Frame]

TABLES = ("customer", "lineitem", "nation", "orders", "part", "region", "supplier")


def _revenue() -> Term:
    return col("l_extendedprice") * (1 - col("l_discount"))


def q1(t: Tables) -> Frame:
    shipped = t["lineitem"].where(col("l_shipdate") <= date(1998, 9, 2))
    return (
        shipped.group_by("l_returnflag", "l_linestatus")
        .agg(
            sum_qty=col("l_quantity").sum(),
            sum_base_price=col("l_extendedprice").sum(),
            sum_disc_price=_revenue().sum(),
            sum_charge=(_revenue() * (1 + col("l_tax"))).sum(),
            avg_qty=col("l_quantity").mean(),
            avg_price=col("l_extendedprice").mean(),
            avg_disc=col("l_discount").mean(),
            count_order="count",
        )
        .order_by("l_returnflag", "l_linestatus")
    )


def q3(t: Tables) -> Frame:
    customers = t["customer"].where(col("c_mktsegment") == "BUILDING")
    orders = t["orders"].where(col("o_orderdate") < date(1995, 3, 15))
    items = t["lineitem"].where(col("l_shipdate") > date(1995, 3, 15))
    joined = customers.join(orders, on={"c_custkey": "o_custkey"}).join(items, on={"o_orderkey": "l_orderkey"})
    totals = joined.group_by("o_orderkey", "o_orderdate", "o_shippriority").agg(revenue=_revenue().sum())
    return totals.order_by("revenue", "o_orderdate", descending=[True, False]).limit(10)


def q5(t: Tables) -> Frame:
    orders = t["orders"].where(col("o_orderdate") >= date(1994, 1, 1), col("o_orderdate") < date(1995, 1, 1))
    joined = (
        t["customer"]
        .join(orders, on={"c_custkey": "o_custkey"})
        .join(t["lineitem"], on={"o_orderkey": "l_orderkey"})
        .join(t["supplier"], on={"l_suppkey": "s_suppkey", "c_nationkey": "s_nationkey"})
        .join(t["nation"], on={"c_nationkey": "n_nationkey"})
        .join(t["region"].where(col("r_name") == "ASIA"), on={"n_regionkey": "r_regionkey"})
    )
    return joined.group_by("n_name").agg(revenue=_revenue().sum()).order_by("revenue", descending=True)


def q6(t: Tables) -> Frame:
    items = t["lineitem"].where(
        col("l_shipdate") >= date(1994, 1, 1),
        col("l_shipdate") < date(1995, 1, 1),
        col("l_discount") >= Decimal("0.05"),
        col("l_discount") <= Decimal("0.07"),
        col("l_quantity") < 24,
    )
    return items.agg(revenue=(col("l_extendedprice") * col("l_discount")).sum())


def q10(t: Tables) -> Frame:
    orders = t["orders"].where(col("o_orderdate") >= date(1993, 10, 1), col("o_orderdate") < date(1994, 1, 1))
    joined = (
        t["customer"]
        .join(orders, on={"c_custkey": "o_custkey"})
        .join(t["lineitem"].where(col("l_returnflag") == "R"), on={"o_orderkey": "l_orderkey"})
        .join(t["nation"], on={"c_nationkey": "n_nationkey"})
    )
    keys = ("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment")
    totals = joined.group_by(*keys).agg(revenue=_revenue().sum())
    return totals.order_by("revenue", "c_custkey", descending=[True, False]).limit(20)


def q12(t: Tables) -> Frame:
    items = t["lineitem"].where(
        col("l_shipmode").isin(["MAIL", "SHIP"]),
        col("l_commitdate") < col("l_receiptdate"),
        col("l_shipdate") < col("l_commitdate"),
        col("l_receiptdate") >= date(1994, 1, 1),
        col("l_receiptdate") < date(1995, 1, 1),
    )
    high = col("o_orderpriority").isin(["1-URGENT", "2-HIGH"])
    joined = t["orders"].join(items, on={"o_orderkey": "l_orderkey"})
    counts = joined.group_by("l_shipmode").agg(
        high_line_count=high.choose(1, 0).sum(), low_line_count=high.choose(0, 1).sum()
    )
    return counts.order_by("l_shipmode")


def q14(t: Tables) -> Frame:
    items = t["lineitem"].where(col("l_shipdate") >= date(1995, 9, 1), col("l_shipdate") < date(1995, 10, 1))
    joined = items.join(t["part"], on={"l_partkey": "p_partkey"})
    promo = col("p_type").startswith("PROMO").choose(_revenue(), 0)
    return joined.agg(promo=promo.sum(), revenue=_revenue().sum())


def q18(t: Tables) -> Frame:
    large = t["lineitem"].group_by("l_orderkey").agg(quantity=col("l_quantity").sum()).having(col("quantity") > 300)
    orders = t["orders"].where(col("o_orderkey").isin(large["l_orderkey"]))
    joined = (
        t["customer"].join(orders, on={"c_custkey": "o_custkey"}).join(t["lineitem"], on={"o_orderkey": "l_orderkey"})
    )
    keys = ("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice")
    totals = joined.group_by(*keys).agg(quantity=col("l_quantity").sum())
    return totals.order_by("o_totalprice", "o_orderdate", "o_orderkey", descending=[True, False, False]).limit(100)


QUERIES: dict[str, Callable[[Tables], Frame]] = {
    "Q1": q1,
    "Q3": q3,
    "Q5": q5,
    "Q6": q6,
    "Q10": q10,
    "Q12": q12,
    "Q14": q14,
    "Q18": q18,
}

BY_HAND = {
    "Q1": """SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
 sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
 sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
 avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
 FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
 GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "Q3": """SELECT o_orderkey, o_orderdate, o_shippriority, sum(l_extendedprice * (1 - l_discount)) AS revenue
 FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
 WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
 GROUP BY o_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
    "Q5": """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
 FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
 JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
 JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
 WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
 GROUP BY n_name ORDER BY revenue DESC""",
    "Q6": """SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
 WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
 AND l_discount >= CAST('0.05' AS DECIMAL(15, 2)) AND l_discount <= CAST('0.07' AS DECIMAL(15, 2))
 AND l_quantity < 24""",
    "Q10": """SELECT c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment,
 sum(l_extendedprice * (1 - l_discount)) AS revenue
 FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
 JOIN nation ON c_nationkey = n_nationkey
 WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R'
 GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
 ORDER BY revenue DESC, c_custkey LIMIT 20""",
    "Q12": """SELECT l_shipmode,
 sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
 sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END) AS low_line_count
 FROM orders JOIN lineitem ON o_orderkey = l_orderkey
 WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
 AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
 GROUP BY l_shipmode ORDER BY l_shipmode""",
    "Q14": """SELECT sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) AS promo,
 sum(l_extendedprice * (1 - l_discount)) AS revenue
 FROM lineitem JOIN part ON l_partkey = p_partkey
 WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
    "Q18": """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
 FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey
 WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
 GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
 ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""",
}
"""Q14 gives both sums instead of their quotient: what an engine makes of a division is another question."""
