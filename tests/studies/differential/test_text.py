"""Studies of text: their rows are the runs they say they are, and share what can be shared."""

from pathlib import Path

import pytest

from headstock.model.transformer import build
from headstock.studies import study
from headstock.studies.base import Opened
from headstock.studies.cells import cell_of
from headstock.studies.differential import lm, long, positions, scaling
from headstock.tasks import parse
from tests.tasks.conftest import shakespeare as shakespeare

SENTENCES = "the herd did not cross the river because it was too wide, so the river waited.\n" * 60


@pytest.mark.usefixtures("shakespeare")
def test_studies_of_the_same_model_share_its_run() -> None:
    def run(study_name: str, row: str, seed: int = 3) -> str:
        asked = study(study_name)
        return cell_of(asked, next(one for one in asked.rows if one.name == row), "full", seed).key

    for arm in ("softmax", "differential", "differential2"):
        name = "softmax-shakespeare" if arm == "softmax" else f"{arm}-params-shakespeare"
        assert run("diff-lm", name) == run("diff-long", arm) == run("diff-scaling", f"{arm}-middle")
        assert run("diff-lm", name, 3) != run("diff-lm", name, 4)
    assert run("diff-lm", "differential-params-shakespeare") != run("diff-lm", "differential-time-shakespeare")


def test_an_arm_whose_steps_take_longer_trains_fewer_of_them() -> None:
    shares = {row.name: row.steps_share for row in lm.STUDY.rows}
    assert shares["softmax-shakespeare"] == shares["differential-params-shakespeare"] == 1
    for version, slower in lm.SLOWER.items():
        assert shares[f"{version}-time-shakespeare"] == pytest.approx(1 / slower)


def test_every_arm_but_softmax_is_set_beside_softmax_on_its_own_corpus() -> None:
    beside = {tuple(sorted(row for row, _ in claim.ours.reads())) for claim in lm.STUDY.claims}
    others = [row.name for row in lm.STUDY.rows if not row.name.startswith("softmax")]
    assert beside == {
        tuple(sorted((name, "softmax-python-docs" if name.endswith("python-docs") else "softmax-shakespeare")))
        for name in others
    }


def test_every_mixer_is_tried_with_every_position() -> None:
    names = {row.name for row in positions.STUDY.rows}
    assert names == {f"{mixer}-{position}" for mixer in positions.MIXERS for position in positions.POSITIONS}
    read = {row for claim in positions.STUDY.claims for row, _ in claim.ours.reads()}
    assert read <= names
    assert {f"differential-{position}" for position in positions.POSITIONS} <= read


def test_a_model_is_read_beyond_where_it_was_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.txt").write_text(SENTENCES)
    task = parse(f"text,corpus={tmp_path / 'text.txt'},context=16,tokenizer=char,held_out=0.5")
    monkeypatch.setattr(long, "READ", 64)
    monkeypatch.setattr(long, "EARLY", slice(2, 6))
    monkeypatch.setattr(long, "LATE", slice(10, 16))
    monkeypatch.setattr(long, "BEYOND", {"to_256": slice(16, 32), "to_512": slice(32, 64)})
    model = build("differential+rope", vocab_size=task.vocab_size, context=16, d_model=16, n_heads=2)
    found = long.by_position(Opened("differential", 0, "full", model, task))
    means = found.details["by_position"]
    assert len(means) == 64
    assert found.figures["loss_to_512"] == pytest.approx(sum(means[32:]) / 32)
    assert found.figures["loss_early"] == pytest.approx(sum(means[2:6]) / 4)


def test_studies_name_the_paper() -> None:
    for asked in (lm.STUDY, long.STUDY, scaling.STUDY, positions.STUDY):
        assert "2410.05258" in asked.source
