"""What a query that only reads may not call, tried on the engine; and no function of the engine is unknown here."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.data import Context, create_object_from_value
from aaiclick.data.browsing import Condition, browse_object, query_rows
from aaiclick.data.sql.closed_functions import OPEN_TABLES, check_calls, is_closed_function, is_closed_table
from aaiclick.errors import AaiclickError, InputError

PURE = {
    *("Aggregate Functions", "Arithmetic", "Arrays", "Bit", "Bitmap", "Comparison", "Conditional", "Dates and Times"),
    *(
        "Distance",
        "Encoding",
        "Encryption",
        "Financial",
        "Geo",
        "Geo Polygon",
        "Hash",
        "IP Address",
        "JSON",
    ),
    *("Logical", "Map", "Mathematical", "Null", "NumericIndexedVector", "QBit", "Random Number", "Rounding", "String"),
    *("String Replacement", "String Search", "String Splitting", "Time Series", "Time Window", "Tuple", "UUID", "URL"),
    *("Type Conversion", "Internal"),
}
"""Kinds of functions that compute with their arguments and nothing else."""

LOOKED_AT = frozenset(
    """
    assignCentroid authenticatedUser authUser bar blockNumber blockSerializedSize blockSize byteSize
    colorOKLABToSRGB colorOKLCHToSRGB colorSRGBToOKLAB colorSRGBToOKLCH connectionId countDigits currentDatabase
    currentProfiles currentQueryID currentRoles currentSchemas currentUser defaultProfiles defaultRoles
    defaultValueOfArgumentType defaultValueOfTypeName digits displayName dumpColumnStructure enabledProfiles
    enabledRoles errorCodeToName evalMLMethod finalizeAggregation flipCoordinates formatQuery formatQueryFromJSON
    formatQueryOrNull formatQuerySingleLine formatQuerySingleLineOrNull formatReadableDecimalSize
    formatReadableQuantity formatReadableSize formatReadableTimeDelta fuzzQuery generateRandomStructure
    getMaxTableNameLengthForDatabase getMergeTreeSetting getSetting getSettingOrDefault getSizeOfEnumType getSubcolumn
    getTypeSerializationStreams groupArrayArray hasThreadFuzzer hierarchicalKMeans highlightQuery icebergBucket
    icebergTruncate identity ignore indexHint initializeAggregation initialQueryID initialQueryStartTime
    isConstant isDecimalOverflow isMergeTreePartCoveredBy joinGet joinGetOrNull lowCardinalityIndices
    lowCardinalityKeys MACNumToString MACStringToNum MACStringToOUI materialize mergeTreePartInfo
    minSampleSizeContinuous minSampleSizeConversion naiveBayesNgrams neighbor normalizedQueryHash
    normalizedQueryHashKeepNames normalizeQuery normalizeQueryKeepNames obfuscateQuery obfuscateQueryWithSeed
    parseISO8601Duration parseQueryToJSON parseReadableSize parseReadableSizeOrNull parseReadableSizeOrZero
    parseTimeDelta partitionId pgGetUserById pgTableIsVisible queryID revision rowNumberInAllBlocks
    rowNumberInBlock runningAccumulate runningConcurrency runningDifference
    runningDifferenceStartingWithFirstValue shardCount shardNum stochasticLinearRegression
    stochasticLogisticRegression structureToCapnProtoSchema structureToProtobufSchema throwIf toColumnTypeName
    tokenizeQuery toTypeName transactionID transactionLatestSnapshot transactionOldestSnapshot transform
    variantElement variantType version visibleWidth
    """.lower().split()
)
"""Functions of other kinds that were looked at, and found to read no more than a query may."""


async def test_every_function_of_the_engine_is_known_as_harmless_or_refused(context: Context) -> None:
    """It fails when a new engine brings a function of a kind that may look outside: look at it, then list it."""
    found = await context.client.rows("SELECT name, alias_to, categories, origin FROM system.functions")
    rows = list(zip(*found.columns, strict=True))
    assert len(rows) > 1_500
    kinds = {name.lower(): kind for name, alias, kind, _ in rows if not alias}
    unknown = []
    for name, alias, _, origin in rows:
        target = (alias or name).lower()
        if is_closed_function(target):
            assert is_closed_function(name), f"{name} is another name of {target}"
        elif origin != "System" or (kinds.get(target) not in PURE and target not in LOOKED_AT):
            unknown.append((name, target))
    assert unknown == []


async def test_every_table_function_of_the_engine_is_open_or_refused(context: Context) -> None:
    found = await context.client.rows("SELECT name FROM system.table_functions")
    names = {name.lower() for name in found.columns[0]} - {"format"}
    assert {name for name in names if not is_closed_table(name)} <= OPEN_TABLES
    assert not any(map(is_closed_table, OPEN_TABLES))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT file('{path}')",
        "SELECT `file`('{path}')",
        "SELECT \"file\"('{path}')",
        "SELECT /* */ file /* */ ( -- \n '{path}' )",
        "SELECT arrayMap(file, ['{path}'])",
        "SELECT arrayMap(x -> file(x), ['{path}'])",
        "WITH x -> file(x) AS f SELECT f('{path}')",
        "SELECT * APPLY(file) FROM (SELECT '{path}' AS p)",
        "SELECT * APPLY file FROM (SELECT '{path}' AS p)",
        "SELECT COLUMNS('p') APPLY(x -> file(x)) FROM (SELECT '{path}' AS p)",
        "SELECT 1 WHERE file('{path}') != ''",
        "SELECT 1 ORDER BY file('{path}')",
        "SELECT toInt8(file('{path}'))",
        "SELECT 1 IN (SELECT file('{path}'))",
        "SELECT (SELECT file('{path}'))",
        "SELECT 1 UNION ALL SELECT length(file('{path}'))",
        "SELECT * FROM file('{path}', 'LineAsString')",
        "SELECT * FROM FILE('{path}', 'LineAsString')",
        "SELECT * FROM format('LineAsString', '{path}') WHERE 0 = (SELECT count() FROM file('{path}', 'RawBLOB'))",
        "SELECT * FROM format(CSV, '1')",
        "SELECT * FROM url('http://127.0.0.1:1/x', 'CSV')",
        "SELECT * FROM s3('http://127.0.0.1:1/x', 'CSV')",
        "SELECT * FROM remote('127.0.0.1:1', system.one)",
        "SELECT * FROM cluster('x', system.one)",
        "SELECT * FROM mysql('127.0.0.1:1', 'd', 't', 'u', 'p')",
        "SELECT * FROM sqlite('{path}', 't')",
        "SELECT * FROM icebergLocal('{path}')",
        "SELECT * FROM executable('ls', 'CSV', 'a String')",
        "SELECT * FROM python(query)",
        "SELECT * FROM loop(numbers(1))",
        "SELECT * FROM dictionary('x')",
        "SELECT * FROM input('a Int8')",
        "SELECT * FROM eval('SELECT 1')",
        "SELECT dictGet('d', 'a', 1)",
        "SELECT hostName()",
        "SELECT aiGenerate('x', 'y')",
        "SELECT sleep(3)",
        "SELECT filesystemAvailable()",
        "SELECT 1 INTO OUTFILE '{path}.out'",
        "SELECT * FROM format(CSV, '1') SETTINGS readonly = 0",
        "INSERT INTO FUNCTION file('{path}.out', 'CSV') SELECT 1",
        "CREATE TABLE x ENGINE = File(CSV, '{path}') AS SELECT 1",
    ],
)
async def test_what_looks_outside_is_refused(context: Context, tmp_path: Path, query: str) -> None:
    path = tmp_path / "outside.txt"
    path.write_text("what nobody asked for")
    with pytest.raises(AaiclickError) as refused:
        await query_rows(query.replace("{path}", str(path)))
    assert "nobody" not in str(refused.value)
    assert not (tmp_path / "outside.txt.out").exists()


async def test_columns_of_such_names_are_read_with_their_table(context: Context) -> None:
    await create_object_from_value({"file": ["a"], "url": ["b"], "input": [1]}, name="odd")
    found = await query_rows("SELECT upper(p_odd.file) AS f, url, input, 'file(1)' FROM p_odd")
    assert found.rows == [("A", "b", 1, "file(1)")]
    with pytest.raises(InputError, match=r"t\.file"):
        await query_rows("SELECT file FROM p_odd")


async def test_a_look_by_conditions_changes_and_calls_nothing(context: Context) -> None:
    await create_object_from_value({"a": ["file('/etc/passwd')", "b"]}, name="calls")
    found = await browse_object("calls", where=[Condition("a", "=", "file('/etc/passwd')")])
    assert found.rows == [("file('/etc/passwd')",)]


def test_what_stands_in_a_text_is_no_call() -> None:
    check_calls("SELECT 'file(1)', 'it\\'s file(', `a'b`, x.file, toFloat64(1e5) FROM numbers(3)")
    for refused in ("SELECT `file`(1)", "SELECT x.file(1)", "SELECT arrayMap(file, a)", "SELECT ''''file(1)"):
        with pytest.raises(InputError):
            check_calls(refused)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT b FROM values('a Int8, b String ALIAS file(\\'/etc/passwd\\')', 1)",
        "SELECT b FROM `values`(concat('a Int8, b String ', 'ALIAS file(\\'/etc/passwd\\')'), 1)",
        "SELECT b FROM generateRandom('a Int8, b String ALIAS file(\\'/etc/passwd\\')') LIMIT 1",
        "SELECT * FROM format(JSONEachRow, 'a Int8, b String DEFAULT file(1)', '{}')",
        "SELECT * FROM format('JSONEachRow', {s:String}, '{}')",
        "SELECT 1 SETTINGS additional_result_filter = 'length(file(\\'/etc/passwd\\')) > 0'",
        "SELECT 1 SETTINGS additional_table_filters = {'t': 'file(1) = 1'}",
    ],
)
async def test_a_text_does_not_hide_what_is_called(context: Context, sql: str) -> None:
    """DEFAULT and ALIAS in the description of columns, and filters in settings, are expressions too."""
    with pytest.raises(AaiclickError):
        await query_rows(sql)
    if "{s:" not in sql:
        with pytest.raises(InputError, match="in a text"):
            check_calls(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM values('a Int8, b String', (1, 'the default'), (2, 'y'))",
        "SELECT * FROM values(-1, 2)",
        "SELECT * FROM values((1, 'ALIAS'), (2, 'y'))",
        "SELECT count() FROM null('a Int8')",
        "SELECT format('{} is the default of {}', 'a', 'b')",
    ],
)
async def test_descriptions_without_expressions_are_open(context: Context, sql: str) -> None:
    assert (await query_rows(sql)).rows
