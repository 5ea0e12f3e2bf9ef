"""What is told of resources that a task waits for."""

from aaiclick.orchestration.rules.resource_standings import ResourceHolder, ResourceInfo, told


def test_it_is_told_what_is_needed_what_is_free_and_who_holds_the_rest() -> None:
    holders = [ResourceHolder(7, 1, "train", 2, 3, 1.0), ResourceHolder(8, 1, "old\n", 1, 3, 1.0, is_ending=True)]
    gpu = ResourceInfo("gpu", "box", 1, 24000, 0, "1", 24000, holders, more=2)
    free = ResourceInfo("db", None, 0, 3, 1.5)
    assert told([gpu, free], {"gpu": 1, "db": 2, "licence:a": 1}) == (
        "it needs gpu=1, db=2, licence:a=1: gpu 1 on box has 0 of 24000 free (held by task 7 'train'; "
        "8 'old\\x0a', which is ending; 2 more), db has 1.5 of 3 free, nobody has licence:a"
    )


def test_of_many_units_the_first_are_told() -> None:
    many = [ResourceInfo("cpu", f"n{number}", 0, 1, 0) for number in range(7)]
    assert told(many, {"cpu": 1}).endswith("cpu on n4 has 0 of 1 free, and 2 more")


def test_a_unit_has_a_place_in_its_list() -> None:
    assert ResourceInfo("licence:a", None, 3, 1, 1, scope=9).place == "9.3.licence:a"
