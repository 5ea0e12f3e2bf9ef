"""Writes relations and expressions as the text of one ClickHouse query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from aaiclick.data.compiling.aliases import called_meanwhile, is_itself, with_others
from aaiclick.data.compiling.conditions import condition_sql
from aaiclick.data.compiling.join_sql import exploded_sql, join_sql
from aaiclick.data.compiling.planning import check_size, has_window, is_aggregate, is_long, keys_of, steps
from aaiclick.data.compiling.pruning import pruned
from aaiclick.data.compiling.row_positions import with_places
from aaiclick.data.operations import ALL_ROWS, SO_FAR
from aaiclick.data.parsing.exact_casts import exact_cast
from aaiclick.data.query.expressions import (
    Call,
    Cast,
    Column,
    Element,
    Expression,
    Key,
    Member,
    One,
    Over,
    Raw,
    Value,
    replaced,
    stand_in,
    walk,
)
from aaiclick.data.query.relations import (
    Aggregate,
    Aligned,
    Distinct,
    Explode,
    Filter,
    Join,
    Nowhere,
    Project,
    Relation,
    Slice,
    Sort,
    Table,
    Union,
    aligned_name,
    column_of,
    free_prefix,
)
from aaiclick.data.query.row_order import in_order
from aaiclick.data.sql import quoting
from aaiclick.data.sql.zones import SECONDS
from aaiclick.data.typing.expression_types import as_key
from aaiclick.data.typing.schema import ORDER


def to_sql(relation: Relation) -> str:
    """Return the query of a relation; raise InputError if it would be too large."""
    check_size(relation)
    return _sql(pruned(relation))


def _sql(relation: Relation) -> str:
    match relation:
        case Aggregate():
            return _aggregate(relation)
        case Join():
            return join_sql(relation, _from)
        case Aligned():
            return _aligned(relation)
        case Union(sources=sources):
            return " UNION ALL ".join(_listed(source, relation.names) for source in sources)
        case Explode(source=source):
            return f"{_select(relation.names)} FROM {_from(source)} ARRAY JOIN {exploded_sql(relation)}"
        case Distinct(source=source, by=()):
            listed = (_as(_as_key(source, name, quoting.name(name)), name) for name in relation.names)
            return f"SELECT DISTINCT {', '.join(listed)} FROM {_from(source)}"
        case Distinct(source=source, by=by):
            keys = ", ".join(_as_key(source, name, quoting.name(name)) for name in by)
            return f"{_select(relation.names)} FROM {_from(source)} LIMIT 1 BY {keys}"
    return _statement(_peel(relation))


def expression_sql(expression: Expression) -> str:
    """Return the SQL of one expression, without steps."""
    return _written([expression], {})[0]


# ---------------------------------------------------------------- one SELECT


@dataclass(frozen=True)
class _Select:
    """The clauses of one SELECT, in the order in which ClickHouse executes them."""

    base: Relation
    conditions: tuple[Expression, ...] = ()
    keys: tuple[Key, ...] = ()
    limit: int | None = None
    offset: int = 0
    columns: Mapping[str, Expression] | None = None


def _peel(relation: Relation) -> _Select:
    columns: Mapping[str, Expression] | None = None
    if isinstance(relation, Project):
        columns, relation = relation.columns, relation.source
    top = _rows(relation)
    if columns is None:
        return top
    if has_window(columns.values()) and (top.limit is not None or top.offset):
        top = _Select(relation)
    return replace(top, columns=columns)


def _rows(relation: Relation) -> _Select:
    limit, offset, columns = None, 0, None
    keys: tuple[Key, ...] = ()
    conditions: tuple[Expression, ...] = ()
    if isinstance(relation, Slice):
        limit, offset, relation = relation.limit, relation.offset, relation.source
        if (rows := in_order(relation)) is not relation:  # the first rows are the first in the relation's order
            assert isinstance(rows, Project)
            columns, relation = rows.columns, rows.source
    if isinstance(relation, Sort):
        keys, relation = relation.keys, relation.source
    while isinstance(relation, Filter):
        conditions = (*relation.conditions, *conditions)
        relation = relation.source
    return _Select(relation, conditions, keys, limit, offset, columns)


def _statement(select: _Select) -> str:
    columns = select.columns
    if columns is None:
        columns = {name: Column(name) for name in select.base.names}
    outer = [*columns.values(), *(key.value for key in select.keys)]
    source, memo, where = _prepared(select.base, select.conditions, outer)
    written = _written(outer, memo)
    called = called_meanwhile(columns, [*select.conditions, *outer[len(columns) :]], select.base.names)
    listed = ", ".join(map(_as, written, called)) or "1"
    keys = _sorting(select.keys, written[len(columns) :])
    text = f"SELECT {listed}{source}{where}{_ordered(keys)}{_sliced(select.limit, select.offset)}"
    return _renamed(text, called, tuple(columns))


def _renamed(text: str, called: tuple[str, ...], names: tuple[str, ...]) -> str:
    if called == names:
        return text
    return f"SELECT {', '.join(map(_as, map(quoting.name, called), names))} FROM ({text})"


def _prepared(
    base: Relation, conditions: Sequence[Expression], expressions: Sequence[Expression]
) -> tuple[str, dict[int, str], str]:
    """Return the FROM clause, the names of expressions that its steps compute (by id), and the WHERE clause."""
    planned = steps(expressions)
    if isinstance(base, Nowhere) and not conditions and not planned:
        return "", {}, ""
    memo: dict[int, str] = {}
    prefix = free_prefix(base.names)
    source = _stepped(_from(base), steps(conditions), memo, prefix)
    where = f" WHERE {' AND '.join(_conditions(conditions, memo))}" if conditions else ""
    if planned:
        source, where = f"(SELECT * FROM {source}{where})" if where else source, ""
        source = _stepped(source, planned, memo, prefix)
    return f" FROM {source}", memo, where


def _stepped(source: str, planned: Sequence[Sequence[Expression]], memo: dict[int, str], prefix: str) -> str:
    for step in planned:
        texts = _written(step, memo)
        names = [f"{prefix}s{len(memo) + number}" for number in range(len(step))]
        added = ", ".join(_as(text, name) for text, name in zip(texts, names, strict=True))
        source = f"(SELECT *, {added} FROM {source})"
        memo.update((id(each), quoting.name(name)) for each, name in zip(step, names, strict=True))
    return source


def _from(relation: Relation) -> str:
    match relation:
        case Table(naive=naive):
            table = relation.function or f"{quoting.name(relation.name)}{' FINAL' * relation.replacing}"
            return f"({quoting.read_as(table, naive)})" if naive or relation.replacing else table
        case Nowhere():
            return "system.one"
    return f"({_sql(relation)})"


def _listed(relation: Relation, names: Sequence[str]) -> str:
    return f"{_select(names)} FROM {_from(relation)}"


def _select(names: Sequence[str]) -> str:
    return f"SELECT {_names(names)}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(quoting.name, names))


def _as(text: str, name: str) -> str:
    quoted = quoting.name(name)
    return quoted if text == quoted else f"{text} AS {quoted}"


def _sorting(keys: Sequence[Key], texts: Sequence[str]) -> list[str]:
    plain = [key.value.sql if isinstance(key.value, Raw) else text for key, text in zip(keys, texts, strict=True)]
    return [f"{text} DESC" if key.descending else text for key, text in zip(keys, plain, strict=True)]


def _ordered(keys: Sequence[str]) -> str:
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def _sliced(limit: int | None, offset: int) -> str:
    text = "" if limit is None else f" LIMIT {limit}"
    return f"{text} OFFSET {offset}" if offset else text


# ---------------------------------------------------------------- groups, aligned rows


def _aggregate(relation: Aggregate) -> str:
    if is_long([*relation.columns.values()]) and (split := _split(relation)) is not None:
        return _sql(split)
    rows = _rows(relation.source) if isinstance(relation.source, Filter) else _Select(relation.source)
    outer = [*keys_of(relation), *relation.columns.values()]
    source, memo, where = _prepared(rows.base, rows.conditions, outer)
    names, before = relation.names, rows.base.names
    pairs = zip(names, outer, strict=True)
    hiding = {name for name, value in pairs if name in before and not is_itself(name, value)}
    called = with_others(names, hiding, before)
    text = f"SELECT {', '.join(map(_as, _written(outer, memo), called))}{source}{where}"
    if relation.keys:
        text += f" GROUP BY {_names(called[: len(relation.keys)])}"
    return _renamed(text, called, names)


def _split(relation: Aggregate) -> Relation | None:
    """Move the aggregates into an inner query, with the rest computed around it; None if that cannot or need not be."""
    totals = [each for each in walk(relation.columns.values()) if is_aggregate(each)]
    if all(value in totals for value in relation.columns.values()):
        return None
    prefix = free_prefix(relation.keys)
    inside = {f"{prefix}{number}": total for number, total in enumerate(totals)}
    known: dict[int, Expression] = {id(total): stand_in(name, total) for name, total in inside.items()}
    for each in walk(relation.columns.values(), known):
        if isinstance(each, Column | Raw):
            return None  # a group key beside totals: ClickHouse decides whether it may be used
    columns = {name: replaced(value, known) for name, value in relation.columns.items()}
    source = Aggregate(relation.source, relation.keys, inside)
    return Project(source, {**{name: Column(name) for name in relation.keys}, **columns})


def _as_key(relation: Relation, name: str, text: str) -> str:
    return as_key(column_of(relation, name).kind).format(text)


def _aligned(relation: Aligned) -> str:
    """Number the rows of each source in its order, and join equal numbers; fail if the sources differ in length."""
    order, listed, text, counts = quoting.name(ORDER), [], "", []
    prefix = free_prefix(name for source in relation.sources for name in source.names)
    place = quoting.name(f"{prefix}n")
    for number, source in enumerate(relation.sources):
        rows, alias = _from(with_places(source)), f"{prefix}{number}"
        inner = f"(SELECT *, row_number() OVER (ORDER BY {order}) AS {place} FROM {rows}) AS {alias}"
        text += f" INNER JOIN {inner} ON {prefix}0.{place} = {alias}.{place}" if number else inner
        listed += [_as(f"{alias}.{quoting.name(name)}", aligned_name(number, name)) for name in source.names]
        counts.append(f"(SELECT count() FROM {_from(source)})")
    unequal = " OR ".join(f"{counts[0]} != {each}" for each in counts[1:])
    # the lengths are compared in a subquery: ClickHouse does not evaluate a plain condition if there are no rows
    equal = f"(SELECT throwIf({unequal}, {_UNEQUAL})) = 0"
    return f"SELECT {', '.join(listed)}, toUInt64({prefix}0.{place}) AS {order} FROM {text} WHERE {equal}"


_UNEQUAL = quoting.text("the Objects have different numbers of rows")


# ---------------------------------------------------------------- expressions


def _written(expressions: Sequence[Expression], memo: Mapping[int, str]) -> list[str]:
    """Return the SQL of expressions; those in `memo` (by id) are written as the names given there."""
    texts = _texts(expressions, memo)
    return [texts[id(each)] for each in expressions]


def _conditions(conditions: Sequence[Expression], memo: Mapping[int, str]) -> list[str]:
    texts = _texts(conditions, memo)
    return [condition_sql(each, texts, memo) for each in conditions]


def _texts(expressions: Sequence[Expression], memo: Mapping[int, str]) -> dict[int, str]:
    texts: dict[int, str] = dict(memo)
    for each in walk(expressions, memo):
        texts[id(each)] = _write(each, texts)
    return texts


def _write(expression: Expression, texts: Mapping[int, str]) -> str:
    match expression:
        case Column(name=name):
            return quoting.name(name)
        case Element(name=name):
            return name
        case Value(value=value):
            return quoting.literal(value)
        case Raw(sql=raw):
            return f"({raw})"
        case Call(sql=template, args=args):
            return _called(template, [texts[id(arg)] for arg in args])
        case Cast(value=value, type=kind):
            return exact_cast(texts[id(value)], kind, value.clock)
        case Member():
            return _member(texts[id(expression.value)], expression)
        case Over():
            return _over(expression, lambda each: texts[id(each)])
        case One(relation=relation):
            return f"({_sql(pruned(relation))})"


def _called(template: str, args: Sequence[str], over: str = "") -> str:
    named = sum(f"{{{number}}}" in template for number in range(len(args)))
    text = template.format(*args, args="".join(f", {arg}" for arg in args[named:]), over=over)
    return text if "{over}" in template else text + over


def _member(value: str, member: Member) -> str:
    among, inside = member.among, as_key(member.value.kind)
    value = inside.format(value)
    if member.has_times:  # else ClickHouse cuts digits of a second to unify types
        value, inside = SECONDS.format(value), SECONDS
    if not isinstance(among, tuple):
        among = pruned(among)
        found = _sql(among) if inside == "{0}" else _listed_as(inside, among)
        return f"toBool({value} IN ({found}))"
    known = [inside.format(quoting.literal(each)) for each in among if each is not None]
    return f"toBool({value} IN ({', '.join(known)}))" if known else "false"


def _listed_as(template: str, relation: Relation) -> str:
    return f"SELECT {template.format(quoting.name(relation.names[0]))} FROM ({_sql(relation)})"


def _over(over: Over, text_of: Callable[[Expression], str]) -> str:
    parts, call = [], over.value
    if over.by:
        parts.append(f"PARTITION BY {', '.join(map(text_of, over.by))}")
    if over.order:
        keys = _sorting(over.order, [text_of(key.value) for key in over.order])
        parts.append(f"ORDER BY {', '.join(keys)}")
    frame = SO_FAR if over.order else ALL_ROWS
    parts += [found] if (found := frame if call.operation.frame is None else call.operation.frame) else []
    words = call.sql
    if call.args and (kind := call.args[0].kind) is not None and kind.is_nullable:
        # for a bare column ClickHouse reads the NULL marks instead, and windows do not find those
        words = words.replace("count({0})", "count(toNullable({0}))")
    return _called(words, [text_of(arg) for arg in call.args], f" OVER ({' '.join(parts)})")
