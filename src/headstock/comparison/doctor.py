"""Checks of the machine and of the package on it, before a comparison is believed.

Every check stands by itself: one that breaks is a failure with its reason, and the others go on.
"""

import importlib.metadata
import math
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from headstock.comparison.compare import cores
from headstock.errors import UserError
from headstock.model.config import config_of
from headstock.model.frame import Frame
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.mixers.softmax import Softmax
from headstock.model.transformer import Transformer, build
from headstock.model.visibility import Visible
from headstock.tasks import corpora, get
from headstock.tasks.base import Task
from headstock.tasks.files import cache_folder
from headstock.training.config import TrainingConfig
from headstock.training.loop import accumulate_gradients, train

Status = Literal["ok", "warn", "fail"]

WITH_TORCH = 1e-6
"""Largest difference from torch's own attention, float32."""
PLAIN_WITH_FAST = 1e-5
"""Largest difference of logits between a mixer's two evaluations, float32."""
DEVICE_WITH_CPU = 1e-3
"""Largest difference of logits, and of the gradient as a share of its size, between a device and the CPU, float32."""
LITTLE_DISK, NO_DISK = 2_000_000_000, 100_000_000


@dataclass(frozen=True)
class Check:
    """What was looked at, how it stands, and what was found or what to do."""

    name: str
    status: Status
    found: str

    def to_dict(self) -> dict[str, str]:
        """Give it as JSON's values."""
        return asdict(self)


def examine(on_check: Callable[[Check], None] | None = None) -> list[Check]:
    """Run every check, in turn; each is handed to `on_check` as soon as it is done."""
    looks: list[tuple[str, Callable[[], tuple[Status, str]]]] = [
        ("torch", _torch_version),
        ("cores and threads", _cores),
        ("device", _device),
        ("attention = SDPA", _torchs_attention),
        ("attention = nn.MultiheadAttention", _torchs_module),
        *((f"plain = fast: {name}", partial(_plain_is_fast, name)) for name in mixer_names()),
        ("same seed, same numbers", _determinism),
        ("disk: working folder", partial(_disk, Path.cwd())),
        ("disk: cache", partial(_disk, cache_folder())),
        ("data: python-docs", _python_docs),
        ("data: shakespeare", _shakespeare),
    ]
    checks = []
    for name, look in looks:
        try:
            check = Check(name, *look())
        except Exception as error:
            said = " ".join(str(error).split())
            check = Check(name, "fail", said if isinstance(error, UserError) else f"{type(error).__name__}: {said}")
        checks.append(check)
        if on_check is not None:
            on_check(check)
    return checks


def _torch_version() -> tuple[Status, str]:
    wanted = next((need for need in importlib.metadata.requires("headstock") or () if need.startswith("torch")), "")
    least = re.search(r">=\s*(\d+)\.(\d+)", wanted)
    here = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if least is None or here is None:
        return "warn", f"{torch.__version__}; which versions are supported ({wanted!r}) could not be read"
    if tuple(map(int, here.groups())) < tuple(map(int, least.groups())):
        return "fail", f"{torch.__version__}, but {wanted} is needed"
    return "ok", f"{torch.__version__} ({wanted} is needed)"


def _cores() -> tuple[Status, str]:
    said = f"{cores()} cores for this process, {torch.get_num_threads()} threads of torch; a comparison runs one a core"
    if torch.get_num_threads() > cores():
        return "warn", f"{said}: more threads than cores; set OMP_NUM_THREADS={cores()}"
    return "ok", said


def _device() -> tuple[Status, str]:
    if not torch.cuda.is_available():
        return "ok", "no GPU: CPU only"
    logits, gradient = largest_differences("cuda")
    said = (
        f"{torch.cuda.get_device_name()} against the CPU: logits differ by {logits:.1e}, the gradient of a training "
        f"step by {gradient:.1e} of its size ({DEVICE_WITH_CPU:.0e} allowed)"
    )
    return ("ok" if _worst(logits, gradient) <= DEVICE_WITH_CPU else "fail"), said


def largest_differences(device: str) -> tuple[float, float]:
    """Give how far a device is from the CPU at most, over all mixers: in logits, and in a training step's gradient.

    The gradient's difference is a share of its size: after a step of AdamW, whose first step is as long for a
    gradient of next to nothing as for any other, weights would say less.
    """
    task = get("crossing")
    worst = [0.0, 0.0]
    for name in mixer_names():
        found = []
        for place in ("cpu", device):
            model = _model(name, task).to(place)
            batch = task.batch(seed=0, index=0, size=16)
            accumulate_gradients(model, batch, TrainingConfig(steps=1, batch_size=16), 0)
            gradient = torch.cat([p.grad.flatten().cpu() for p in model.parameters() if p.grad is not None])
            with torch.no_grad():
                found.append((model(batch.inputs.to(place)).cpu(), gradient))
        (logits, gradient), (others, other_gradient) = found
        worst[0] = _worst(worst[0], _furthest(logits, others))
        worst[1] = _worst(worst[1], ((gradient - other_gradient).norm() / gradient.norm()).item())
    return worst[0], worst[1]


def _torchs_attention() -> tuple[Status, str]:
    mixer = Softmax(config_of("softmax,d_model=64,n_heads=4", vocab_size=2, context=48), 0)
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 4, 48, 16, generator=generator) for _ in range(3))
    visible = Visible(48, 48, q.device)
    expected = scaled_dot_product_attention(q, k, v, is_causal=True)
    fast = mixer.mix_fast(q, k, v, visible)
    plain = mixer.weigh(mixer.score(q, k, visible), visible.dense) @ v
    apart = _worst(_furthest(plain, expected), math.nan if fast is None else _furthest(fast, expected))
    return _judged(apart, WITH_TORCH)


@torch.no_grad()
def _torchs_module() -> tuple[Status, str]:
    config = config_of("softmax,d_model=64,n_heads=4,qkv_bias=true,output_bias=true", vocab_size=2, context=48)
    ours = Softmax(config, 0)
    theirs = nn.MultiheadAttention(64, 4, batch_first=True)
    maps = (ours.query, ours.key, ours.value)
    assert all(own is not None for own in maps)
    assert ours.output is not None
    theirs.in_proj_weight.copy_(torch.cat([own.weight for own in maps if own is not None]))
    theirs.in_proj_bias.copy_(torch.cat([own.bias for own in maps if own is not None]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())
    x = torch.randn(2, 48, 64, generator=torch.Generator().manual_seed(0))
    hidden = ~torch.ones(48, 48, dtype=torch.bool).tril()
    expected = theirs(x, x, x, attn_mask=hidden, need_weights=False)[0]
    frames = [Frame(Visible(48, 48, x.device), None, None, None, plain) for plain in (True, False)]
    return _judged(_worst(*(_furthest(ours(x, frame), expected) for frame in frames)), WITH_TORCH)


@torch.no_grad()
def _plain_is_fast(mixer: str) -> tuple[Status, str]:
    """Read one batch by both evaluations of a mixer."""
    task = get("crossing")
    model = _model(mixer, task).eval()
    ids = task.batch(seed=0, index=0, size=16).inputs
    fast = model(ids)
    model.plain = True
    return _judged(_furthest(model(ids), fast), PLAIN_WITH_FAST)


def _determinism() -> tuple[Status, str]:
    task = get("crossing")
    ends = []
    for _ in range(2):
        model = _model("softmax", task)
        train(model, task, TrainingConfig(steps=2))
        ends.append(model.state_dict())
    differing = [name for name, numbers in ends[0].items() if not torch.equal(numbers, ends[1][name])]
    if differing:
        return "fail", f"two runs of two training steps ended with other numbers: {', '.join(differing)}"
    return "ok", "two runs of two training steps ended with the same bits"


def _disk(folder: Path) -> tuple[Status, str]:
    there = next(place for place in [folder, *folder.absolute().parents] if place.is_dir())
    if not os.access(there, os.W_OK):
        return "warn", f"{folder} cannot be written to"
    free = shutil.disk_usage(there).free
    said = f"{free / 1e9:,.1f} GB free in {folder}"
    if free < NO_DISK:
        return "fail", f"{said}: too little for a run; free some space"
    return ("warn" if free < LITTLE_DISK else "ok"), said


def _python_docs() -> tuple[Status, str]:
    corpus = corpora.read("python-docs")
    return "ok", f"{len(corpus.text):,} characters of Python {corpus.facts['Python']}, sha256 {corpus.sha256[:12]}"


def _shakespeare() -> tuple[Status, str]:
    places = corpora.shakespeare_places()
    here = next((place for place in places if place.is_file()), None)
    if here is None:
        return "warn", (
            f"not on this machine: it is fetched when first asked for; without a network, put "
            f"{corpora.SHAKESPEARE_FILE} into {places[-1].parent}, or set HEADSTOCK_DATA to its folder"
        )
    corpora.read("shakespeare")  # refuses another text
    return "ok", f"{here}, checksum as it should be"


def _model(name: str, task: Task) -> Transformer:
    position = "none" if "learned" in mixer_class(name).refuses else "learned"
    return build(f"{name}+{position}", vocab_size=task.vocab_size, context=task.context)


def _furthest(one: Tensor, other: Tensor) -> float:
    return (one - other).abs().max().item()


def _worst(*apart: float) -> float:
    """Give the largest; where one is no number, that."""
    return math.nan if any(map(math.isnan, apart)) else max(apart)


def _judged(apart: float, allowed: float) -> tuple[Status, str]:
    return ("ok" if apart <= allowed else "fail"), f"differ by {apart:.1e} at most ({allowed:.0e} allowed)"
