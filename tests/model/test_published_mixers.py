"""Mixers that installed packages publish by name: found, listed, and no trouble to others where they are broken."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headstock.errors import UserError
from headstock.model.mixers import mixer_class, mixer_names, mixer_source, published_mixers
from headstock.model.mixers.softmax import Softmax
from headstock.model.transformer import build
from tests.cli.conftest import Headstock, headstock, here  # noqa: F401
from tests.model.cases import SIZES, some_ids
from tests.model.test_user_mixers import WEIGH_ONLY

Publish = Callable[..., None]


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Publish]:
    """Install a package that publishes names, each as module:Class."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def install(package: str, source: str = WEIGH_ONLY, **names: str) -> None:
        site = tmp_path / "site"
        info = site / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / f"{package}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {reference}" for name, reference in names.items()]
        (info / "entry_points.txt").write_text("\n".join(["[headstock.mixers]", *lines]))

    yield install
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refusal(name: str) -> str:
    with pytest.raises(UserError) as refused:
        mixer_class(name)
    return str(refused.value)


def test_a_published_mixer_is_found_by_its_name(publish: Publish) -> None:
    publish("theirs", rival="theirs:Mine")
    assert mixer_class("rival").__name__ == "Mine"
    assert mixer_source("rival") == WEIGH_ONLY
    assert build("rival+rope", **SIZES)(some_ids()).isfinite().all()
    assert "did you mean 'rival'?" in refusal("rivel")
    assert [mixer.package for mixer in published_mixers()] == ["theirs"]


def test_a_name_of_ours_is_ours(publish: Publish) -> None:
    publish("theirs", softmax="theirs:Mine")
    assert mixer_class("softmax") is Softmax
    assert published_mixers() == []


def test_a_name_that_two_packages_publish_is_neithers(publish: Publish) -> None:
    publish("theirs", rival="theirs:Mine")
    publish("others", rival="others:Mine")
    assert "rival is published by others (others:Mine) and theirs (theirs:Mine)" in refusal("rival")
    assert mixer_class("others:Mine").__module__ == "others"


@pytest.mark.parametrize(
    ("source", "reference", "part"),
    [
        ("1 / 0", "theirs:Mine", "theirs cannot be imported: ZeroDivisionError"),
        (WEIGH_ONLY, "theirs:Mien", "theirs has no class 'Mien': did you mean 'Mine'?"),
        (WEIGH_ONLY, "theirs", "it must be module:Class"),
        (WEIGH_ONLY, "gone:Mine", "cannot import gone"),
    ],
)
def test_a_broken_one_is_told_where_it_is_asked_for_and_disturbs_nothing_else(
    publish: Publish,
    headstock: Headstock,  # noqa: F811
    source: str,
    reference: str,
    part: str,
) -> None:
    publish("theirs", source, rival=reference)
    publish("others", fine="others:Mine")
    said = refusal("rival")
    assert said.startswith("rival, published by theirs, ")
    assert part in said
    assert mixer_class("fine").__name__ == "Mine"
    listed = headstock("list", "variants")
    assert listed.status == 0
    assert part in " ".join(listed.out.split())
    assert "From the package others." in " ".join(listed.out.split())
    assert set(mixer_names()) <= set(listed.out.split())


def test_listing_and_checking_a_published_mixer_take_its_name(publish: Publish, headstock: Headstock) -> None:  # noqa: F811
    publish("theirs", rival="theirs:Mine")
    assert "Softmax again, by `weigh` alone. Weights: normalised. From the package theirs." in " ".join(
        headstock("list", "variants").out.split()
    )
    assert "rival+rope conforms" in headstock("check", "rival+rope", "--only", "cached = whole").out


def test_one_without_a_docstring_is_listed_all_the_same(publish: Publish, headstock: Headstock) -> None:  # noqa: F811
    publish("theirs", WEIGH_ONLY.replace('"""Softmax again, by `weigh` alone."""', ""), bare="theirs:Mine")
    said = headstock("list", "variants")
    assert said.status == 0
    assert "It has no docstring." in said.out
