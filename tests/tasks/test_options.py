import pytest

from headstock.errors import UserError
from headstock.tasks.options import one_of, share, tokenizer_name, whole


@pytest.mark.parametrize("value", ["64", 64, " 64 "])
def test_a_whole_number_is_read_from_text_or_number(value: str | int) -> None:
    assert whole(1)("context", value) == 64


@pytest.mark.parametrize("value", ["0", "-3", "x", "", "3.5", 3.5, 64.0, True, "1e3", "9" * 5000])
def test_what_is_no_whole_number_is_refused_with_what_was_wanted(value: str | float) -> None:
    with pytest.raises(UserError, match="context must be a whole number of at least 1: got"):
        whole(1)("context", value)


def test_a_number_that_is_a_slip_is_refused_before_anything_is_made() -> None:
    assert whole(1)("length", 1_000_000) == 1_000_000
    with pytest.raises(UserError, match=r"length must be at most 1,000,000: got '99999999999999999999'"):
        whole(1)("length", "99999999999999999999")


@pytest.mark.parametrize("value", ["0.25", 0.25, ".25"])
def test_a_share_is_read_from_text_or_number(value: str | float) -> None:
    assert share(0.5)("held_out", value) == 0.25


@pytest.mark.parametrize("value", ["2", "0", "-0.1", "nan", "inf", "a tenth", "10%", True])
def test_what_is_no_share_is_refused_with_what_was_wanted(value: str | float) -> None:
    with pytest.raises(UserError, match=r"held_out must be a share above 0 and at most 0\.5: got"):
        share(0.5)("held_out", value)


@pytest.mark.parametrize(("value", "read"), [("0", 0.0), (0, 0.0), ("-0.0", 0.0), ("0.25", 0.25), (0.5, 0.5)])
def test_a_share_may_be_none_where_that_has_a_meaning(value: str | float, read: float) -> None:
    assert str(share(0.5, zero=True)("noise", value)) == str(read)
    with pytest.raises(UserError, match=r"noise must be a share from 0 to 0\.5: got"):
        share(0.5, zero=True)("noise", "0.51")


def test_a_name_is_one_of_those_known() -> None:
    assert one_of("random", "none")("fillers", "none") == "none"
    with pytest.raises(UserError, match="fillers must be random or none: got 'some'"):
        one_of("random", "none")("fillers", "some")


def test_a_tokenizer_has_one_way_to_be_written() -> None:
    assert tokenizer_name("tokenizer", "bpe:0512") == "bpe:512"
    assert tokenizer_name("tokenizer", "byte") == "byte"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("bites", "did you mean 'byte'"),
        ("char:3", "did you mean 'char'"),
        ("bpe", "lacks its vocabulary size"),
        ("bpe:many", "lacks its vocabulary size"),
        ("bpe:-5", "lacks its vocabulary size"),
        ("bpe:256", "choose bpe:257 or more"),
        (7, "there is no tokenizer 7"),
    ],
)
def test_a_tokenizer_that_is_none_is_refused_with_advice(value: str | int, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        tokenizer_name("tokenizer", value)
