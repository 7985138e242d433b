"""`headstock list`: what can be named on the command line."""

import inspect
from typing import Annotated, Any, Literal, get_args, get_origin

from cyclopts import Parameter

from headstock.cli.layout import columns, filled, print_json
from headstock.cli.options import AsJson
from headstock.errors import UserError

MOST_TOKENS = 14
"""Characters of a vocabulary that are told one by one."""


def list_what_there_is(
    what: Annotated[
        Literal["variants", "tasks", "programs", "studies", "instruments"] | None,
        Parameter(help="One of the lists alone [default: all]."),
    ] = None,
    /,
    *,
    as_json: AsJson = False,
) -> int:
    """List the variants that can be compared, with every key that can be set, tasks, programs, studies and
    instruments.
    """
    found: dict[str, Any] = {}
    if what in (None, "variants"):
        found["variants"] = _variants()
    if what in (None, "tasks"):
        found["tasks"] = _tasks()
    if what in (None, "programs"):
        found["programs"] = _programs()
    if what in (None, "studies"):
        found["studies"] = _studies()
    if what in (None, "instruments"):
        found["instruments"] = _instruments()
    if as_json:
        print_json(found)
        return 0
    blocks = _variants_laid_out(found["variants"]) if "variants" in found else []
    blocks += _tasks_laid_out(found["tasks"]) if "tasks" in found else []
    blocks += _programs_laid_out(found["programs"]) if "programs" in found else []
    blocks += _studies_laid_out(found["studies"]) if "studies" in found else []
    blocks += _instruments_laid_out(found["instruments"]) if "instruments" in found else []
    print("\n\n".join(blocks))
    return 0


def _variants() -> dict[str, Any]:
    from headstock.comparison.request import OF_THE_TASK, SET_BY
    from headstock.model.config import POSITIONS, ModelConfig
    from headstock.model.mixers import mixer_class, mixer_names, published_mixers
    from headstock.training.config import TrainingConfig

    usual = ModelConfig(vocab_size=1, context=1)
    model_keys = [key for key in ModelConfig.model_fields if key not in (*OF_THE_TASK, "mixer", "position")]
    training_keys = [key for key in TrainingConfig.model_fields if key not in SET_BY]
    return {
        "mixers": [_mixer(name, mixer_class(name)) for name in mixer_names()],
        "published": [_published(mixer) for mixer in published_mixers()],
        "positions": list(POSITIONS),
        "usual_position": usual.position,
        "keys": [_key(key, ModelConfig, getattr(usual, key)) for key in model_keys],
        "training_keys": [_key(key, TrainingConfig, TrainingConfig.model_fields[key].default) for key in training_keys],
    }


def _mixer(name: str, kind: Any) -> dict[str, Any]:
    return {
        "name": name,
        "meaning": next(iter((kind.__doc__ or "").strip().splitlines()), "It has no docstring."),
        "weights_are": kind.weights_are,
        "floor": kind.is_floor,
        "refuses": list(kind.refuses),
    }


def _published(mixer: Any) -> dict[str, Any]:
    """Describe what a package publishes; a class that cannot be used is listed with the reason."""
    from headstock.model.mixers import mixer_class

    where = {"package": mixer.package, "reference": mixer.reference}
    try:
        return {**_mixer(mixer.name, mixer_class(mixer.name)), **where, "fault": None}
    except UserError as error:
        return {"name": mixer.name, **where, "fault": str(error)}


def _key(key: str, config: Any, usual: Any) -> dict[str, Any]:
    field = config.model_fields[key]
    choices = list(get_args(field.annotation)) if get_origin(field.annotation) is Literal else None
    return {"key": key, "default": usual, "choices": choices, "meaning": field.description or ""}


def _tasks() -> list[dict[str, Any]]:
    from headstock import tasks

    return [
        {
            "name": name,
            "meaning": tasks.about(name).summary,
            "options": [
                {"key": option.name, "default": option.default, "meaning": option.meaning}
                for option in tasks.about(name).options
            ],
        }
        for name in tasks.names()
    ]


def _programs() -> list[dict[str, Any]]:
    from headstock.programs import zoo

    found = []
    for name, make in zoo.PROGRAMS.items():
        one = make()
        found.append(
            {
                "name": name,
                "meaning": next(iter(one.says.splitlines()), ""),
                "choices": [
                    {"key": key, "default": choice.default}
                    for key, choice in inspect.signature(make).parameters.items()
                ],
                "vocabulary": list(one.vocabulary),
                "max_length": one.max_length,
                "modes": list(one.modes),
            }
        )
    return found


def _studies() -> list[dict[str, Any]]:
    from headstock import studies

    found = []
    for name in studies.study_names():
        one = studies.study(name)
        minutes = {budget: effort.minutes for budget, effort in one.efforts.items()}
        about = {"name": name, "title": one.title, "asks": one.asks, "source": one.source}
        found.append({**about, "rows": len(one.rows), "claims": len(one.claims), "minutes": minutes})
    return found


def _instruments() -> list[dict[str, Any]]:
    from headstock import instruments

    return [
        {"name": name, "meaning": (inspect.getdoc(getattr(instruments, name)) or "").partition("\n")[0]}
        for name in instruments.instrument_names()
    ]


def _variants_laid_out(variants: dict[str, Any]) -> list[str]:
    mixers = [[mixer["name"], _about(mixer)] for mixer in variants["mixers"]]
    mixers += [
        [mixer["name"], mixer["fault"] or f"{_about(mixer)} From the package {mixer['package']}."]
        for mixer in variants["published"]
    ]
    positions = ", ".join(
        f"{name} (where none is named)" if name == variants["usual_position"] else name
        for name in variants["positions"]
    )
    return [
        "A variant is MIXER[+POSITION][,key=value...], such as differential+rope,n_heads=8.",
        "Mixers\n"
        + columns(mixers, indent="  ")
        + "\n"
        + filled("FILE.py:CLASS or PACKAGE.MODULE:CLASS names a mixer of your own.", "  "),
        "Positions\n" + filled(positions, "  "),
        "Keys of a variant, or of all arms with --set\n" + _keys_laid_out(variants["keys"]),
        "Keys of training, with --set alone\n" + _keys_laid_out(variants["training_keys"]),
    ]


def _about(mixer: dict[str, Any]) -> str:
    notes = [f"Weights: {mixer['weights_are']}."]
    if mixer["floor"]:
        notes.append("A floor: every other arm is held against it too.")
    if mixer["refuses"]:
        notes.append(f"Not with {', '.join(mixer['refuses'])}.")
    return " ".join([mixer["meaning"], *notes])


def _keys_laid_out(keys: list[dict[str, Any]]) -> str:
    rows = [["key", "default", "meaning"]]
    for key in keys:
        choices = f"{', '.join(key['choices'])}. " if key["choices"] else ""
        rows.append([key["key"], _written(key["default"]), choices + key["meaning"]])
    return columns(rows, indent="  ")


def _written(value: Any) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _tasks_laid_out(tasks: list[dict[str, Any]]) -> list[str]:
    rows = []
    for task in tasks:
        rows.append([task["name"], "", task["meaning"]])
        rows += [["", f"{option['key']}={option['default']}", option["meaning"]] for option in task["options"]]
    return [
        "A task is NAME[,key=value...], such as text,context=128; `headstock show TASK` tells all of one.",
        "Tasks, with their options and what these are where they are not given\n" + columns(rows, indent="  "),
    ]


def _programs_laid_out(programs: list[dict[str, Any]]) -> list[str]:
    rows = []
    for program in programs:
        tokens = "".join(map(str, program["vocabulary"])) or "any"
        tokens = tokens if len(tokens) <= MOST_TOKENS else f"{tokens[:3]}…{tokens[-1]}"
        name = ",".join([program["name"], *(f"{one['key']}={one['default']}" for one in program["choices"])])
        modes = "both" if program["modes"] == ["bidirectional", "causal"] else ", ".join(program["modes"])
        rows.append([name, modes, tokens, program["meaning"]])
    said = (
        "A program is compiled by `headstock compile NAME[,key=value...] -o DIR`; FILE.py:NAME is one of your own. "
        "Where it has both modes, bidirectional is the usual one; --vocab gives it other tokens."
    )
    heads = ["program", "modes", "vocabulary", "what it computes"]
    return [filled(said), "Programs\n" + columns([heads, *rows], indent="  ")]


def _studies_laid_out(studies: list[dict[str, Any]]) -> list[str]:
    rows = [[study["name"], _minutes(study["minutes"]), study["asks"]] for study in studies]
    said = "A study is rerun by `headstock study NAME`; FILE.py:NAME is one of your own."
    return [
        said,
        *(["Studies, with the minutes of each budget on two cores\n" + columns(rows, indent="  ")] if rows else []),
    ]


def _minutes(budgets: dict[str, float | None]) -> str:
    known = [f"{budget} {minutes:g}" for budget, minutes in budgets.items() if minutes is not None]
    return ", ".join(known)


def _instruments_laid_out(instruments: list[dict[str, Any]]) -> list[str]:
    rows = [[instrument["name"], instrument["meaning"]] for instrument in instruments]
    return [
        "An instrument is called in Python on a model, as in headstock.instruments.attention_patterns(model, ids).",
        "Instruments\n" + columns(rows, indent="  "),
    ]
