"""What options mean to several commands."""

from headstock.cli.options import command_again, invocation


def test_the_command_that_goes_on_with_a_result_is_the_given_one_without_fresh() -> None:
    given = invocation.set(["study", "ladder", "--fresh", "--out", "a folder"])
    try:
        assert command_again() == "headstock study ladder --out 'a folder'"
    finally:
        invocation.reset(given)
