"""What other libraries call it: where a name of theirs is used here, the error tells ours."""

from __future__ import annotations

from collections.abc import Iterable

from aaiclick.urls import did_you_mean

OTHER_NAMES = {
    # rows
    "filter": "where(condition)",
    "query": "where(condition)",
    "loc": "where(condition), or obj['column']",
    "iloc": "limit(count, offset)",
    "slice_rows": "limit(count, offset)",
    "sort": "order_by(*keys)",
    "sort_values": "order_by(*keys)",
    "sort_index": "order_by(*keys)",
    "nlargest": "top(count, by)",
    "nsmallest": "top(count, by, descending=False)",
    "top_k": "top(count, by)",
    "bottom_k": "top(count, by, descending=False)",
    "distinct": "unique()",
    "drop_duplicates": "unique(*by), or deduplicate(*by, order_by=…)",
    "dropna": "drop_nulls(*names)",
    "drop_nans": "where(~col(name).is_nan())",
    "take": "limit(count)",
    "fetch": "limit(count)",
    "extend": "concat(other)",
    "append": "concat(other), or await obj.insert(rows)",
    "vstack": "concat(other)",
    "union": "concat(other)",
    "union_all": "concat(other)",
    # columns
    "assign": "with_columns(name=…)",
    "mutate": "with_columns(name=…)",
    "with_column": "with_columns(name=…)",
    "withColumn": "with_columns(name=…)",
    "insert_column": "with_columns(name=…)",
    "get_column": "obj['name']",
    "fillna": "fill_null(value)",
    "astype": "cast(type)",
    "dtypes": "schema.types",
    "dtype": "schema.types",
    "collect_schema": "schema",
    "isna": "is_null()",
    "isnull": "is_null()",
    "notna": "not_null()",
    "notnull": "not_null()",
    "is_not_null": "not_null()",
    "isnan": "is_nan()",
    "is_in": "isin(values)",
    "between": "the signs: (a >= low) & (a <= high)",
    "alias": "a keyword: select(name=…)",
    # groups and totals
    "groupby": "group_by(*keys)",
    "groupBy": "group_by(*keys)",
    "aggregate": "agg(…)",
    "summarise": "agg(…)",
    "summarize": "agg(…)",
    "n_unique": "nunique()",
    "average": "mean()",
    "avg": "mean()",
    "stddev": "std()",
    "variance": "var()",
    "len": "count()",
    "height": "await obj.count()",
    # shapes
    "melt": "unpivot(on, index=…)",
    "pivot_longer": "unpivot(on, index=…)",
    "pivot_table": "await obj.pivot(on, index, values, total)",
    "pivot_wider": "await obj.pivot(on, index, values, total)",
    "unnest": "explode(*columns)",
    "merge": "join(other, on)",
    "merge_asof": "join_asof(other, on)",
    "asof_join": "join_asof(other, on)",
    "asof": "join_asof(other, on)",
    "crossJoin": "cross_join(other)",
    # answers
    "to_list": "await obj.data()",
    "tolist": "await obj.data()",
    "to_dict": "await obj.data()",
    "to_dicts": 'await obj.data(orient="records")',
    "to_dataframe": "await obj.df()",
    "to_pandas": "await obj.df()",
    "toPandas": "await obj.df()",
    "to_arrow": "await obj.arrow()",
    "to_pyarrow": "await obj.arrow()",
    "to_csv": "await obj.export('x.csv')",
    "to_parquet": "await obj.export('x.parquet')",
    "write_csv": "await obj.export('x.csv')",
    "write_parquet": "await obj.export('x.parquet')",
    "execute": "await obj.data(), or await obj for a table of it",
    "compute": "await obj.data(), or await obj for a table of it",
    "show": "await obj.markdown()",
    "glimpse": "await obj.describe()",
    "info": "schema",
    "clone": "await obj.copy()",
    "itertuples": 'await obj.data(orient="records")',
    "iterrows": 'await obj.data(orient="records")',
    "iter_rows": 'await obj.data(orient="records")',
    "apply": "the operations of columns; for a function of Python, map() of aaiclick.orchestration",
    "map_elements": "the operations of columns; for a function of Python, map() of aaiclick.orchestration",
    "pipe": "the function itself: f(obj)",
}
"""From the names of pandas, polars, Spark, dplyr and Ibis to what is written here."""


def hint(name: str, known: Iterable[str]) -> str:
    """What was probably meant by a name that is none; empty if nobody knows."""
    if name in OTHER_NAMES:
        return f"Here it is {OTHER_NAMES[name]}."
    return did_you_mean(name, [each for each in known if not each.startswith("_")])
