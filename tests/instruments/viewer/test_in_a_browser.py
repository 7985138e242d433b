"""The page as a browser shows it: views that share a page serve themselves alone, and what is pointed at is said."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import headstock as hs
from headstock.instruments.viewer import as_fragment, as_page, inspected
from tests.model.cases import Case, some_ids

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
IDS = some_ids(batch=1)
# Waits until each view has drawn, does what a test asks for, and writes down what it finds.
DRIVER = """
<pre class="found"></pre>
<script>(async () => {
const views = [...document.querySelectorAll(".hs-maps")], found = {};
const pause = (time) => new Promise((done) => setTimeout(done, time));
const until = async (true_) => { for (let i = 0; i < 400 && !true_(); i++) await pause(5); };
const drawn = () => until(() => views.every((view) => view.dataset.shown));
const settled = () => pause(60);
const key = (on, key) => on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const said = (view) => view.querySelector(".hs-readout").textContent;
try { await drawn(); await settled(); %s } catch (error) { found.error = String(error.stack); }
document.querySelector(".found").textContent = JSON.stringify(found);
})();</script>
"""


def driven(page: str, script: str, folder: Path) -> dict[str, Any]:
    """Open a page, run a script in it, and give what it found."""
    file = folder / "page.html"
    body = DRIVER % script
    whole = (
        page.replace("</body>", body + "</body>") if "</body>" in page else f"<!doctype html><body>{page}{body}</body>"
    )
    file.write_text(whole, encoding="utf-8")
    command = [
        *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"),
        *("--window-size=1000,900", "--virtual-time-budget=20000", "--dump-dom", file.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre class="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None
    assert found[1], "the page's script did not end"
    read: dict[str, Any] = json.loads(html.unescape(found[1]))
    assert "error" not in read, read["error"]
    return read


def test_two_views_on_one_page_know_nothing_of_each_other(tmp_path: Path) -> None:
    softmax, differential = Case("", "softmax").model(), Case("", "differential+rope").model()
    patterns = hs.instruments.attention_patterns(differential, IDS)
    page = inspected(softmax, IDS)._repr_html_() + patterns._repr_html_()
    found = driven(
        page,
        """
        const shows = (view) => [said(view), view.querySelector("h4").textContent].join();
        const before = shows(views[1]);
        views[0].querySelectorAll(".hs-row")[1].querySelectorAll("button")[2].click();
        await until(() => views[0].dataset.shown === "0.1.2");
        key(views[0].querySelector(".hs-window"), "ArrowUp");
        await settled();
        found.first = [views[0].dataset.shown, views[0].querySelector("h4").textContent];
        found.second = views[1].dataset.shown;
        found.same = before === shows(views[1]);
        found.heads = views.map((view) => view.querySelectorAll(".hs-heads button").length);
        found.predicts = views.map((view) => view.querySelectorAll(".hs-expects li").length);
        found.ids = document.querySelectorAll("[id]").length;
        found.globals = ["meta", "state", "make", "weightsOf", "mapOf"].filter((name) => name in window);
        """,
        tmp_path,
    )
    assert found == {
        "first": ["0.1.2", "Layer 1, head 2"],
        "second": "0.0.0",
        "same": True,
        "heads": [8, 4],
        "predicts": [5, 0],
        "ids": 0,
        "globals": [],
    }


def test_what_is_pointed_at_is_the_models_weight(tmp_path: Path) -> None:
    model = Case("", "differential2+rope").model()
    view = inspected(model, IDS)
    found = driven(
        as_page(view),
        """
        const frame = views[0].querySelector(".hs-window");
        for (const name of ["End", "ArrowUp", "ArrowUp", "Home", "ArrowRight", "ArrowRight"]) key(frame, name);
        await settled();
        found.said = said(views[0]);
        for (let i = 0; i < 12; i++) key(frame, "ArrowRight");
        await settled();
        found.hidden = said(views[0]);
        """,
        tmp_path,
    )
    label = view.labels
    written = re.fullmatch(rf"query 6 “{label[6]}” → key 2 “{label[2]}”: (\S+) = (\S+) − (\S+) × (\S+)", found["said"])
    assert written is not None, found["said"]
    whole, first, share, second = (float(number.replace("−", "-")) for number in written.groups())
    _, cache = model.run_with_cache(IDS)
    names = ("pattern", "pattern_1", "pattern_2")
    exact = [float(cache[name, 0][0, 0, 6, 2]) for name in names]
    assert [whole, first, second] == pytest.approx(exact, rel=6e-3, abs=1e-7)
    assert share == pytest.approx(float(cache["lambda", 0][0, 6, 0]), rel=6e-3)
    assert found["hidden"].endswith("later than the query, so hidden")


def test_a_row_that_is_kept_stays_while_the_pointer_moves_and_shades_the_text(tmp_path: Path) -> None:
    found = driven(
        as_page(inspected(Case("", "uniform").model(), IDS)),
        """
        const frame = views[0].querySelector(".hs-window"), tokens = [...views[0].querySelectorAll(".hs-token")];
        tokens[4].dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
        await settled();
        tokens[7].dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
        await settled();
        const { left, top } = frame.getBoundingClientRect();
        frame.dispatchEvent(new PointerEvent("pointermove", { clientX: left + 90, clientY: top + 30, bubbles: true }));
        await settled();
        found.query = tokens.map((token) => token.classList.contains("hs-query")).indexOf(true);
        found.shaded = tokens.filter((token) => token.style.background !== "").length;
        found.hidden = tokens.filter((token) => token.classList.contains("hs-hidden")).length;
        found.expects = views[0].querySelector(".hs-expects h4").textContent.slice(0, 8);
        key(frame, "Escape");
        tokens[7].dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
        await settled();
        found.after = tokens.map((token) => token.classList.contains("hs-query")).indexOf(true);
        """,
        tmp_path,
    )
    assert found == {"query": 4, "shaded": 5, "hidden": 4, "expects": "After 4 ", "after": 7}


def test_a_layer_is_shown_by_its_mean_and_each_choice_of_shade_is_drawn(tmp_path: Path) -> None:
    model = Case("", "softmax").model()
    found = driven(
        as_page(inspected(model, IDS)),
        """
        const selects = [...views[0].querySelectorAll("select")], frame = views[0].querySelector(".hs-window");
        const choose = (select, value) => { select.value = value; select.dispatchEvent(new Event("change")); };
        key(frame, "Home"); await settled();
        choose(selects[0], "mean"); await until(() => views[0].dataset.shown === "0.0.mean"); await settled();
        found.mean = said(views[0]);
        choose(selects[0], "max"); await until(() => views[0].dataset.shown === "0.0.max"); await settled();
        found.max = said(views[0]);
        const pixels = () => views[0].querySelector(".hs-pinned canvas").toDataURL();
        const pictures = [pixels()];
        for (const value of ["linear", "log"]) { choose(selects[1], value); await settled(); pictures.push(pixels()); }
        choose(selects[2], "row"); await settled(); pictures.push(pixels());
        found.different = new Set(pictures).size;
        """,
        tmp_path,
    )
    weights = model.weights(IDS)[0][0, :, 8, 0].detach()
    assert float(found["mean"].split()[-1]) == pytest.approx(float(weights.mean()), rel=6e-3)
    assert float(found["max"].split()[-1]) == pytest.approx(float(weights.max()), rel=6e-3)
    assert found["different"] == 4


def test_which_predictions_were_right_is_marked(tmp_path: Path) -> None:
    model = Case("", "softmax").model(torch.float32)
    view = inspected(model, model.generate(IDS[:, :4], 5))  # what it goes on with, it predicts
    assert {one.right for one in view.predictions} == {True, False, None}
    found = driven(
        as_page(view),
        """
        const rows = [...views[0].querySelectorAll(".hs-all tbody tr")];
        found.marks = rows.map((row) => row.lastChild.textContent);
        found.head = [...views[0].querySelectorAll(".hs-all thead th")].map((cell) => cell.textContent);
        const tokens = [...views[0].querySelectorAll(".hs-token")];
        found.underlined = tokens.map((token) => token.classList.contains("hs-right"));
        """,
        tmp_path,
    )
    expected = [
        "—" if one.rank is None else "✓ right" if one.right else f"✗ rank {one.rank}" for one in view.predictions
    ]
    assert found["marks"] == expected
    assert found["head"][:3] == ["#", "token read", "predicts → 1."]
    assert found["underlined"] == [False, *(bool(one.right) for one in view.predictions[:-1])]


def test_a_model_without_maps_shows_its_tokens_and_predictions(tmp_path: Path) -> None:
    found = driven(
        as_page(inspected(Case("", "lstm").model(), IDS)),
        """
        found.tokens = views[0].querySelectorAll(".hs-token").length;
        found.expects = views[0].querySelectorAll(".hs-expects li").length;
        found.canvases = document.querySelectorAll("canvas").length;
        """,
        tmp_path,
    )
    assert found == {"tokens": 9, "expects": 5, "canvases": 0}


def test_a_view_too_large_for_a_notebook_shows_its_small_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headstock.instruments.viewer.page.MOST_IN_A_NOTEBOOK", 0)
    found = driven(
        as_fragment([inspected(Case("", "softmax").model(), IDS)]),
        """
        await until(() => "drawn" in views[0].dataset);
        found.windows = document.querySelectorAll(".hs-window").length;
        const picture = views[0].querySelectorAll(".hs-heads canvas")[5];
        const pixels = picture.getContext("2d").getImageData(0, 0, picture.width, picture.height).data;
        found.painted = [...pixels].filter((_, i) => i % 4 === 3).filter(Boolean).length;
        """,
        tmp_path,
    )
    assert found == {"windows": 0, "painted": 9 * 10 // 2}
