"""The doctor finds a sound machine sound, and says what is not."""

import json
from pathlib import Path

import pytest

from headstock.comparison import doctor
from headstock.model.mixers import mixer_names
from headstock.tasks import corpora
from tests.cli.conftest import Headstock


def test_a_sound_machine_passes_every_check(headstock: Headstock) -> None:
    said = headstock("doctor", "--json")
    assert said.status == 0, said.out
    checks = {check["name"]: check for check in json.loads(said.out)}
    assert {f"plain = fast: {name}" for name in mixer_names()} <= set(checks)
    assert not [name for name, check in checks.items() if check["status"] == "fail"]
    for name in ("torch", "attention = SDPA", "attention = nn.MultiheadAttention", "same seed, same numbers"):
        assert checks[name]["status"] == "ok"


def test_a_check_that_fails_is_told_by_the_exit_status(headstock: Headstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "WITH_TORCH", -1.0)
    said = headstock("doctor")
    assert said.status == 1
    lines = [line for line in said.out.splitlines() if line.startswith("fail")]
    assert len(lines) == 2
    assert said.err.endswith("checks failed.\n")


def test_a_check_that_breaks_is_a_failure_and_the_others_go_on(
    headstock: Headstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("no such\nkernel")

    monkeypatch.setattr(doctor, "scaled_dot_product_attention", lambda *_, **__: broken())
    checks = doctor.examine()
    failed = [check for check in checks if check.status == "fail"]
    assert [(check.name, check.found) for check in failed] == [("attention = SDPA", "RuntimeError: no such kernel")]
    assert checks[-1].name == "data: shakespeare"


def test_a_text_of_another_checksum_is_a_failure(
    headstock: Headstock, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor._shakespeare()[0] == "warn"
    (here / corpora.SHAKESPEARE_FILE).write_text("To be, or not to be")
    monkeypatch.setenv("HEADSTOCK_DATA", str(here))
    (check,) = [check for check in doctor.examine() if check.name == "data: shakespeare"]
    assert check.status == "fail"
    assert "is not the text that corpus shakespeare names" in check.found


def test_a_full_disk_is_told(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "NO_DISK", 10**30)
    status, found = doctor._disk(here / "not" / "yet" / "made")
    assert status == "fail"
    assert "free some space" in found


def test_a_device_is_as_far_from_the_cpu_as_the_cpu_is_from_itself() -> None:
    assert doctor.largest_differences("cpu") == (0.0, 0.0)


@pytest.mark.gpu
def test_the_gpu_agrees_with_the_cpu() -> None:
    assert doctor._device()[0] == "ok"
