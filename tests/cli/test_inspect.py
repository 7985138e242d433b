"""`headstock inspect`: tokens, predictions and heads of one text, and the page."""

import json
import shutil
from pathlib import Path

import pytest
import torch

import headstock as hs
from headstock.cli.inspect import OF_A_KIND, _standing_out
from headstock.instruments.viewer import inspected
from headstock.tasks.tokenizers import ByteTokenizer
from tests.cli.conftest import Headstock, tiny_run, tree

TEXT = "the herd did not cross the river"


def saved(variant: str, context: int = 64, **sizes: int) -> hs.Transformer:
    """Put a model of bytes into the folder `model`."""
    sizes = {"d_model": 8, "n_layers": 2, "n_heads": 2, **sizes}
    model = hs.build(variant, vocab_size=256, context=context, **sizes).eval()
    hs.save(model, "model", tokenizer=ByteTokenizer())
    return model


def test_a_text_is_told_token_by_token_and_head_by_head(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run")
    said = headstock("inspect", "run", TEXT)
    assert said.status == 0, said.err
    lines = said.out.splitlines()
    assert "1 layer × 2 heads · 7 tokens · loss" in lines[0]
    tokens = [line.split() for line in lines if line.startswith("  ") and "→" in line][:7]
    assert [(row[0], row[1]) for row in tokens] == [(str(place), word) for place, word in enumerate(TEXT.split())]
    assert [row[5] for row in tokens[:-1]] == TEXT.split()[1:]
    assert [row[5] for row in tokens[-1:]] == ["—"]
    heads = lines[lines.index(next(line for line in lines if "effective tokens" in line)) + 1 :]
    assert [line.split()[:2] for line in heads] == [["0", "0"], ["0", "1"]]
    assert "negative" not in said.out
    assert not [name for name in tree(here) if name.endswith(".html")]


def test_json_says_what_the_model_says(headstock: Headstock, here: Path) -> None:
    model = saved("differential+rope")
    said = json.loads(headstock("inspect", "model", "café", "--top", "3", "--json").out)
    ids = list("café".encode())
    with torch.no_grad():
        shares = model(torch.tensor([ids]))[0].softmax(-1)
    assert [token["id"] for token in said["tokens"]] == ids
    assert said["tokens"][3]["token"] == "\\xc3"
    for place, token in enumerate(said["tokens"]):
        assert [one["probability"] for one in token["predicts"]] == pytest.approx(shares[place].topk(3).values.tolist())
    comes_next = said["tokens"][0]["next"]
    assert comes_next["probability"] == pytest.approx(float(shares[0, ids[1]]))
    assert comes_next["loss"] == pytest.approx(-float(shares[0, ids[1]].log()))
    assert said["tokens"][-1]["next"] == {"probability": None, "loss": None, "rank": None}
    assert (said["weights_are"], said["page"], len(said["heads"])) == ("signed", None, 2)
    view = inspected(model, ids, maps=False)
    assert [one["sink"] for one in said["heads"]] == [one.sink for one in view.heads]


def test_the_page_holds_what_the_function_gives(headstock: Headstock, here: Path) -> None:
    model = saved("softmax")
    said = headstock("inspect", "model", "abcabc", "-o", "pages/maps.html")
    assert said.out.splitlines()[-1] == "Every map: pages/maps.html"
    tokenizer = ByteTokenizer()
    view = inspected(model, tokenizer.encode("abcabc"), label=tokenizer.label)
    view.save("same.html")
    assert Path("pages/maps.html").read_bytes() == Path("same.html").read_bytes()
    again = headstock("inspect", "model", "abc", "--out", "pages/maps.html", "--json")
    assert json.loads(again.out)["page"] == "pages/maps.html"
    assert Path("pages/maps.html").read_bytes() != Path("same.html").read_bytes()


def test_of_a_long_text_and_many_heads_a_part_is_printed_unless_all_is_asked_for(
    headstock: Headstock, here: Path
) -> None:
    saved("softmax", n_layers=12, n_heads=12, d_model=12)
    text = "x" * 60
    part, whole = headstock("inspect", "model", text), headstock("inspect", "model", text, "--all")
    assert "… tokens 24 to 35: --all prints them" in part.out
    assert "Heads that stand out, of 144" in part.out
    few = [
        line for line in part.out.splitlines() if line.endswith(("sharpest", "widest", "first token", "token before"))
    ]
    assert 3 <= len(few) <= 12
    assert "--all" not in whole.out
    _, tokens, heads = whole.out.strip().split("\n\n")
    assert (len(tokens.splitlines()), len(heads.splitlines())) == (2 + 60, 2 + 144)
    assert max(map(len, whole.out.splitlines())) <= 110


def test_the_heads_that_stand_out_are_the_first_of_their_kind() -> None:
    model = hs.build("softmax", vocab_size=256, context=64, d_model=12, n_layers=12, n_heads=12)
    view = inspected(model, list(b"hello there"), maps=False)
    found = _standing_out(view)
    sharpest = min(view.heads, key=lambda one: one.effective_tokens)
    assert "sharpest" in found[sharpest.layer, sharpest.head]
    assert sum("first token" in kinds for kinds in found.values()) == OF_A_KIND
    assert not any("negative" in kinds for kinds in found.values())


def test_a_model_without_maps_says_why(headstock: Headstock, here: Path) -> None:
    saved("lstm+none")
    said = headstock("inspect", "model", "abc", "-o", "page.html")
    assert "No maps: lstm keeps what it has read in a state" in " ".join(said.out.split())
    assert "effective tokens" not in said.out
    assert Path("page.html").exists()


def test_a_single_token_is_read_too(headstock: Headstock, here: Path) -> None:
    saved("softmax")
    said = headstock("inspect", "model", "a", "-o", "page.html")
    assert said.status == 0
    assert "1 token" in said.out
    assert json.loads(headstock("inspect", "model", "a", "--json").out)["heads"][0]["largest"] is None


def test_a_model_of_no_numbers_is_told_as_such(headstock: Headstock, here: Path) -> None:
    model = saved("softmax")
    with torch.no_grad():
        model.embed.weight.fill_(torch.nan)
    hs.save(model, "model", tokenizer=ByteTokenizer())
    said = headstock("inspect", "model", "abc", "-o", "page.html")
    assert said.status == 2
    assert said.err.startswith("headstock: embed.weight holds 2,048 NaN or infinite of 2,048 numbers")
    assert not (here / "page.html").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["run", ""], "the text is empty: give the model something to read."),
        (["run", " "], "the text is empty"),
        (["run", "the hird"], "the word 'hird' is not among the 36 known ones: did you mean 'herd'?"),
        (["run", "the " * 20], "the text is 20 tokens long and the model's context 17: give a shorter one."),
        (["run", "the", "--top", "0"], "--top is 0: give 1 or more."),
        (["run", "the", "-o", "page.png"], "page.png is not named as a page: give it the ending .html."),
        (["run", "the", "-o", "folder.html"], "folder.html is a folder: give the name of a file."),
        (["nowhere", "the"], "there is no folder nowhere"),
        (["bare", "the"], "tokenizer.json cannot be read"),
        (["run"], "headstock inspect needs TEXT"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_written(
    headstock: Headstock, here: Path, words: list[str], part: str
) -> None:
    tiny_run(headstock, "run")
    shutil.copytree("run", "bare")
    Path("bare/tokenizer.json").unlink()
    Path("folder.html").mkdir()
    before = tree(here)
    assert part in headstock("inspect", *words).complaint
    assert tree(here) == before
