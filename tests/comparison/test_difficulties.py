from headstock.comparison.difficulties import Difficulties, at_in_words, found_at, written

CROSSED = [{"depth": depth, "length": length} for length in (64, 128) for depth in (0, 0.25, 1.0)]


def test_two_difficulties_cross_in_the_order_in_which_they_were_asked() -> None:
    of = Difficulties.of(CROSSED)
    assert of.values == {"depth": [0, 0.25, 1.0], "length": [64, 128]}
    assert of.in_words == "depth × length"
    assert of.grid()
    assert of.across() is None


def test_one_difficulty_of_numbers_is_drawn_along_and_one_of_words_is_not() -> None:
    assert Difficulties.of([{"pairs": 4}, {"pairs": 1}]).across() == ("pairs", [4, 1])
    assert Difficulties.of([{"order": "random"}, {"order": "grouped"}]).across() is None
    assert not Difficulties.of([{"pairs": 4}]).grid()


def test_where_nothing_is_probed_there_is_no_difficulty() -> None:
    assert Difficulties.of([]).names == []
    assert Difficulties.of([]).across() is None


def test_what_a_run_says_of_a_probe_is_found_whatever_stands_first() -> None:
    said = [{"at": at, "metrics": {"accuracy": place}} for place, at in enumerate(CROSSED)]
    assert found_at(said, {"length": 128, "depth": 0.25}) == said[4]
    assert found_at(said, {"length": 256, "depth": 0.25}) is None
    assert found_at([], {"length": 128}) is None


def test_difficulties_are_written_as_short_as_they_are() -> None:
    assert at_in_words({"depth": 0.25, "train_length": 4096, "order": "random"}) == (
        "depth 0.25, train length 4,096, order random"
    )
    assert written(1.0) == "1"
