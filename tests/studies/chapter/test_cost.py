from collections.abc import Mapping

import pytest

from headstock.studies.base import Opened
from headstock.studies.chapter.cost import STUDY, of_layer
from tests.studies.declared import published

LENGTHS = (64, 128, 256)


def test_the_published_figures_stand_letter_for_letter() -> None:
    row = next(row for row in STUDY.rows if row.name == "stored")
    assert dict(row.published) == {
        "exponent_of_time": "1.91", "exponent_of_memory": "1.87", "matrix_mb_128": "0.5", "matrix_mb_256": "2.0",
        "matrix_mb_512": "8.0", "matrix_mb_1024": "32.0", "matrix_mb_2048": "128.0", "matrix_mb_4096": "512.0",
        "matrix_mb_8192": "2048.0", "matrix_mb_16384": "8192.0", "fits_8gb": "8192 and not 16384",
    }  # fmt: skip
    assert published(STUDY, "exponent_of_memory") == {"stored": "1.87"}


@pytest.fixture(scope="module")
def stored() -> Mapping[str, float]:
    return of_layer(True, Opened("", 0, "quick"), lengths=LENGTHS, seconds=0.1).figures


def test_the_matrix_is_counted_by_formula(stored: Mapping[str, float]) -> None:
    assert [stored[f"matrix_mb_{length}"] for length in LENGTHS] == [0.125, 0.5, 2.0]
    assert stored["matrix_mb_16384"] == 8192


def test_eight_gigabytes_end_where_the_square_reaches_them(stored: Mapping[str, float]) -> None:
    assert 8192 <= stored["fits_8gb"] < 16_384


def test_memory_grows_faster_where_all_scores_are_stored_and_the_result_is_the_same(
    stored: Mapping[str, float],
) -> None:
    tiles = of_layer(False, Opened("", 0, "quick"), lengths=LENGTHS, seconds=0.1).figures
    assert stored["exponent_of_memory"] > tiles["exponent_of_memory"] + 0.3
    assert tiles["apart"] < 1e-5
