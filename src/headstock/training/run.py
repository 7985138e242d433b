"""A run as a folder: what was asked, what came out, and all that is needed to go on after a stop.

- run.json: the run's description, as the caller gave it; a folder never changes what it is a run of
- environment.json: versions, machine, threads, the kernel that ran
- config.json, model.safetensors (and tokenizer.json): the model, which `headstock.load` reads
- state.pt: model, optimiser and progress while it runs, from which it goes on bit for bit
- metrics.jsonl: one line an evaluation, as they come
- result.json: written last: finished, or failed and why
- crash.json: in its place where the process itself failed; the run may be tried again
"""

import io
import json
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from headstock import __version__
from headstock.checkpoints.files import is_left_behind, read_json, unwritable, write_atomically, write_json
from headstock.checkpoints.native import Vocabulary, save
from headstock.errors import UserError
from headstock.model.causality import refuse_looking_ahead
from headstock.model.config import ModelConfig
from headstock.model.kernels import kernel_that_ran
from headstock.model.transformer import Transformer, build_from
from headstock.training.agreement import refuse_penalty
from headstock.training.batch import Batch, BatchSource, Probe
from headstock.training.config import TrainingConfig
from headstock.training.evaluation import evaluate, score
from headstock.training.loop import NonFiniteLoss, Progress, threads_set_to, train
from headstock.training.optimiser import adamw
from headstock.training.start import Start

SECONDS_BETWEEN_SAVES = 30.0


@dataclass(frozen=True)
class RunResult:
    """What a finished run says of itself; `result.json` holds the same."""

    status: Literal["finished", "failed"]
    reason: str | None
    """Why a failed run failed."""
    steps_done: int
    seconds_per_step: float
    metrics: dict[str, dict[str, float]]
    """By split ("held-out", "train"), at the end; empty for a failed run."""
    curve: list[dict[str, float]]
    probes: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    """Of each probe what it is ("at") and its metrics, by name ("metrics"); empty where there was none."""

    @classmethod
    def read(cls, folder: Path) -> "RunResult | None":
        """Read a folder's result, or how its process crashed; None where there is neither.

        Raises UserError where it is damaged.
        """
        path = next((folder / name for name in ("result.json", "crash.json") if (folder / name).exists()), None)
        if path is None:
            return None
        try:
            result = cls(**read_json(path, "the result of a run"))
        except TypeError:
            result = None
        if result is None or not result._is_whole():
            raise UserError(f"{path} is not the result of a run: delete it to run again.")
        return result

    def _is_whole(self) -> bool:
        """Say whether it has what the run that wrote it must have had."""
        if self.status == "failed":
            return isinstance(self.reason, str)
        try:
            names = set(self.metrics["held-out"])
            return bool(names) and names == set(self.metrics["train"]) and all(names < set(at) for at in self.curve)
        except (TypeError, KeyError):
            return False


def run(
    folder: Path,
    model_config: ModelConfig,
    training: TrainingConfig,
    source: BatchSource,
    description: dict[str, Any],
    *,
    device: str = "cpu",
    tokenizer: Vocabulary | None = None,
    may_look_ahead: bool = False,
    start: Start | None = None,
    probes: Iterable[Probe] = (),
    on_progress: Callable[[Progress], None] | None = None,
) -> RunResult:
    """Train a model in `folder`, going on where an earlier call stopped; give the result, at once if it is there.

    `description` says what the run is, in JSON's terms. may_look_ahead: what is asked is no token of the row, so that a
    model may see all of it. start: the saved model that it begins with; a frozen one takes no step. probes: what it is
    scored on at the end, beside the source's splits. Raises UserError where the folder holds another run, a model looks
    ahead that may not, or agreement is to cost what the model does not have, and lets KeyboardInterrupt pass once the
    state is saved. A loss that is no number ends the run as failed.
    """
    refuse_penalty(model_config, training)
    if not (folder / "result.json").exists():
        probes = tuple(probes)  # drawn now: what has no rows is refused before anything is trained or written
    _claim(folder, description)
    if (folder / "result.json").exists():
        done = RunResult.read(folder)
        assert done is not None
        return done
    model, optimiser, progress = _start_or_go_on(folder, model_config, training, device, start)
    if progress.steps_done == 0:
        if tokenizer is not None:
            tokenizer.save(folder)
        first = source.batch(seed=training.seed, index=0, size=training.batch_size)
        if not may_look_ahead:
            refuse_looking_ahead(model, first.inputs[:1].to(device))
        write_json(folder / "environment.json", environment(model, first, training))
    if start is not None and start.frozen:
        return _scored(folder, model, training, source, probes)
    keeper = _Keeper(folder, model, optimiser)
    _write_curve(folder, progress.curve)

    def after_step(progress: Progress) -> None:
        if on_progress is not None:
            on_progress(progress)
        if progress.curve and progress.curve[-1]["step"] == progress.steps_done:
            _write_curve(folder, progress.curve[-1:], mode="a")
        keeper.keep_now_and_then(progress)
        try:
            raise_if_interrupted()
        except KeyboardInterrupt:
            keeper.keep(progress)  # here alone: a second Ctrl-C may fall inside a step, whose half is not to be kept
            raise

    try:
        with interrupts_held_back() as raise_if_interrupted:
            train(
                model,
                source,
                training,
                optimiser=optimiser,
                progress=progress,
                before_evaluation=lambda progress: (
                    keeper.keep(progress) if progress.steps_done == training.steps else None
                ),
                after_step=after_step,
            )
    except NonFiniteLoss as error:
        return _finish(folder, progress, reason=str(error))
    held_out = {key: value for key, value in progress.curve[-1].items() if key not in ("step", "train_loss")}
    save(model, folder)
    metrics = {"held-out": held_out, "train": evaluate(model, source, "train")}
    return _finish(folder, progress, metrics=metrics, probes=probed(model, probes, source.bytes_per_token))


def probed(
    model: Transformer, probes: Iterable[Probe], bytes_per_token: torch.Tensor | None = None
) -> list[dict[str, dict[str, Any]]]:
    """Score a model on each probe, as `RunResult.probes` keeps it; bytes_per_token as its source has them."""
    return [{"at": dict(probe.at), "metrics": score(model, probe.batches, bytes_per_token)} for probe in probes]


def _scored(
    folder: Path, model: Transformer, training: TrainingConfig, source: BatchSource, probes: Iterable[Probe]
) -> RunResult:
    """Score a model as it is: one entry in the curve, after no step."""
    with threads_set_to(training.threads):
        held_out, train_split = evaluate(model, source), evaluate(model, source, "train")
        by_probe = probed(model, probes, source.bytes_per_token)
    progress = Progress(curve=[{"step": 0, "train_loss": train_split["loss"], **held_out}])
    save(model, folder)
    return _finish(folder, progress, metrics={"held-out": held_out, "train": train_split}, probes=by_probe)


@contextmanager
def interrupts_held_back() -> Iterator[Callable[[], None]]:
    """Keep Ctrl-C from falling inside a step; give a function that raises KeyboardInterrupt if it was pressed.

    A second Ctrl-C is not held back. Outside the main thread, where Python delivers none, nothing is changed.
    """
    pressed = False

    def note(signum: int, frame: object) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def raise_if_interrupted() -> None:
        if pressed:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield raise_if_interrupted
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield raise_if_interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def environment(model: Transformer, first: Batch, training: TrainingConfig) -> dict[str, Any]:
    """Say where a run happens: versions, machine, threads, device and the kernel that its first batch ran on."""
    device = model.embed.weight.device
    return {
        "headstock": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "dtype": str(model.embed.weight.dtype).removeprefix("torch."),
        "threads": training.threads,
        "kernel": kernel_that_ran(model, first.inputs[:1].to(device)),
    }


def processor_name() -> str:
    """Give the processor's name as the system tells it, or its architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _claim(folder: Path, description: dict[str, Any]) -> None:
    """Make the folder this run's, or see that it already is."""
    path = folder / "run.json"
    if not path.exists():
        if folder.exists() and not all(is_left_behind(path) for path in folder.iterdir()):
            raise UserError(f"{folder} is not empty and holds no run: choose another folder.")
        write_json(path, description)
    elif read_json(path, "the description of a run") != json.loads(json.dumps(description)):
        raise UserError(f"{folder} holds another run: choose another folder, or ask for the run described in {path}.")


def _start_or_go_on(
    folder: Path, config: ModelConfig, training: TrainingConfig, device: str, start: Start | None
) -> tuple[Transformer, torch.optim.AdamW, Progress]:
    if not (folder / "state.pt").exists():
        model = (build_from(config, seed=training.seed) if start is None else start.open()).to(device)
        return model, adamw(model, training), Progress()
    try:
        state = torch.load(folder / "state.pt", map_location=device, weights_only=True)
        model = build_from(config).to(device)
        model.load_state_dict(state["model"])
        optimiser = adamw(model, training)
        optimiser.load_state_dict(state["optimiser"])
        return model, optimiser, Progress(**state["progress"])
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise UserError(f"{folder / 'state.pt'} is damaged ({said}): delete it to start this run anew.") from None


class _Keeper:
    """Writes the state that a stopped run goes on from."""

    def __init__(self, folder: Path, model: Transformer, optimiser: torch.optim.Optimizer) -> None:
        self.path = folder / "state.pt"
        self.model = model
        self.optimiser = optimiser
        self.kept_at = time.monotonic()

    def keep(self, progress: Progress) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "progress": asdict(progress),
        }
        written = io.BytesIO()  # torch.save itself meets a full disk with an error that does not say so
        torch.save(state, written)
        write_atomically(self.path, lambda beside: beside.write_bytes(written.getbuffer()))
        self.kept_at = time.monotonic()

    def keep_now_and_then(self, progress: Progress) -> None:
        if time.monotonic() - self.kept_at > SECONDS_BETWEEN_SAVES:
            self.keep(progress)


def _finish(
    folder: Path,
    progress: Progress,
    *,
    reason: str | None = None,
    metrics: dict[str, dict[str, float]] | None = None,
    probes: list[dict[str, dict[str, Any]]] | None = None,
) -> RunResult:
    result = RunResult(
        status="finished" if reason is None else "failed",
        reason=reason,
        steps_done=progress.steps_done,
        seconds_per_step=progress.seconds_per_step,
        metrics=metrics or {},
        curve=progress.curve,
        probes=probes or [],
    )
    _write_curve(folder, result.curve)
    write_json(folder / "result.json", asdict(result))
    (folder / "crash.json").unlink(missing_ok=True)
    (folder / "state.pt").unlink(missing_ok=True)  # the model is in its own file: nothing is left to go on with
    return result


def _write_curve(folder: Path, curve: list[dict[str, float]], mode: Literal["w", "a"] = "w") -> None:
    """Write evaluations a line each: for people who watch, while result.json and state.pt are what is read again."""
    try:
        with (folder / "metrics.jsonl").open(mode, encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in curve)
    except OSError as error:
        raise unwritable(folder / "metrics.jsonl", error) from None


def record_crash(folder: Path, description: dict[str, Any], reason: str) -> None:
    """Record that a run's process failed for a reason that says nothing of the run; it may be tried again."""
    _claim(folder, description)
    write_json(folder / "crash.json", asdict(RunResult("failed", reason, 0, 0.0, {}, [])))
