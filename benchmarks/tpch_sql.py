"""All queries of TPC-H as the standard writes them, in the SQL that ClickHouse and DuckDB both read.

Joins are written with JOIN, in the order of the standard's lists; what is correlated stays so. Q8, Q14 and Q17 give
sums instead of quotients; where rows could tie, ORDER BY has a key more.
"""

from __future__ import annotations

from benchmarks.tpch import BY_HAND

_REST = {
    "Q2": """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
 FROM part JOIN partsupp ON p_partkey = ps_partkey JOIN supplier ON s_suppkey = ps_suppkey
 JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
 WHERE p_size = 15 AND p_type LIKE '%BRASS' AND r_name = 'EUROPE' AND ps_supplycost = (SELECT min(ps2.ps_supplycost)
 FROM partsupp ps2 JOIN supplier s2 ON s2.s_suppkey = ps2.ps_suppkey JOIN nation n2 ON s2.s_nationkey = n2.n_nationkey
 JOIN region r2 ON n2.n_regionkey = r2.r_regionkey WHERE part.p_partkey = ps2.ps_partkey AND r2.r_name = 'EUROPE')
 ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    "Q4": """SELECT o_orderpriority, count(*) AS order_count FROM orders
 WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
 AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
 GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    "Q7": """SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue FROM (
 SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year,
 l_extendedprice * (1 - l_discount) AS volume
 FROM supplier JOIN lineitem ON s_suppkey = l_suppkey JOIN orders ON o_orderkey = l_orderkey
 JOIN customer ON c_custkey = o_custkey JOIN nation n1 ON s_nationkey = n1.n_nationkey
 JOIN nation n2 ON c_nationkey = n2.n_nationkey
 WHERE ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
 AND l_shipdate >= DATE '1995-01-01' AND l_shipdate <= DATE '1996-12-31') AS shipping
 GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
    "Q8": """SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) AS brazil, sum(volume) AS volumes
 FROM (
 SELECT extract(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
 FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
 JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
 JOIN nation n1 ON c_nationkey = n1.n_nationkey JOIN region ON n1.n_regionkey = r_regionkey
 JOIN nation n2 ON s_nationkey = n2.n_nationkey
 WHERE r_name = 'AMERICA' AND o_orderdate >= DATE '1995-01-01' AND o_orderdate <= DATE '1996-12-31'
 AND p_type = 'ECONOMY ANODIZED STEEL') AS all_nations GROUP BY o_year ORDER BY o_year""",
    "Q9": """SELECT nation, o_year, sum(amount) AS sum_profit FROM (
 SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year,
 l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
 FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
 JOIN partsupp ON ps_suppkey = l_suppkey AND ps_partkey = l_partkey JOIN orders ON o_orderkey = l_orderkey
 JOIN nation ON s_nationkey = n_nationkey WHERE p_name LIKE '%green%') AS profit
 GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
    "Q11": """SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS worth
 FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
 WHERE n_name = 'GERMANY' GROUP BY ps_partkey HAVING sum(ps_supplycost * ps_availqty) > (
 SELECT sum(ps_supplycost * ps_availqty) * CAST('0.0001' AS DECIMAL(15, 4))
 FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
 WHERE n_name = 'GERMANY') ORDER BY worth DESC, ps_partkey""",
    "Q13": """SELECT c_count, count(*) AS custdist FROM (
 SELECT c_custkey, count(o_orderkey) AS c_count
 FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
 GROUP BY c_custkey) AS c_orders GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    "Q15": """WITH revenue AS (SELECT l_suppkey AS supplier_no, sum(l_extendedprice * (1 - l_discount)) AS total_revenue
 FROM lineitem WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY l_suppkey)
 SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier JOIN revenue ON s_suppkey = supplier_no
 WHERE total_revenue = (SELECT max(total_revenue) FROM revenue) ORDER BY s_suppkey""",
    "Q16": """SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt
 FROM partsupp JOIN part ON p_partkey = ps_partkey
 WHERE p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
 AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
 GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    "Q17": """SELECT sum(l_extendedprice) AS price FROM lineitem JOIN part ON p_partkey = l_partkey
 WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX' AND l_quantity < (
 SELECT 0.2 * avg(l2.l_quantity) FROM lineitem l2 WHERE l2.l_partkey = part.p_partkey)""",
    "Q19": """SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem JOIN part ON p_partkey = l_partkey
 WHERE l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
 (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
 AND l_quantity >= 1 AND l_quantity <= 11 AND p_size BETWEEN 1 AND 5)
 OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
 AND l_quantity >= 10 AND l_quantity <= 20 AND p_size BETWEEN 1 AND 10)
 OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
 AND l_quantity >= 20 AND l_quantity <= 30 AND p_size BETWEEN 1 AND 15))""",
    "Q20": """SELECT s_name, s_address FROM supplier JOIN nation ON s_nationkey = n_nationkey
 WHERE n_name = 'CANADA' AND s_suppkey IN (SELECT ps_suppkey FROM partsupp
 WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%') AND ps_availqty > (
 SELECT 0.5 * sum(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
 AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01')) ORDER BY s_name""",
    "Q21": """SELECT s_name, count(*) AS numwait FROM supplier JOIN lineitem l1 ON s_suppkey = l1.l_suppkey
 JOIN orders ON o_orderkey = l1.l_orderkey JOIN nation ON s_nationkey = n_nationkey
 WHERE o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate AND n_name = 'SAUDI ARABIA'
 AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
 AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey
 AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)
 GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
    "Q22": """SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal FROM (
 SELECT substring(c_phone, 1, 2) AS cntrycode, c_acctbal FROM customer
 WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > (
 SELECT avg(c2.c_acctbal) FROM customer c2 WHERE c2.c_acctbal > 0
 AND substring(c2.c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17'))
 AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = customer.c_custkey)) AS custsale
 GROUP BY cntrycode ORDER BY cntrycode""",
}

ALL = {f"Q{number}": {**BY_HAND, **_REST}[f"Q{number}"] for number in range(1, 23)}
