"""A record as JSON and back: program.json, for a person to read and for `load` to open."""

from dataclasses import asdict
from typing import Any

from headstock.programs.compiler.certificate import Certificate
from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.plan import Decision
from headstock.programs.explaining.anatomy import Anatomy, ColumnPart, HeadPart, Held, Term, Traced, UnitPart
from headstock.programs.reading_out import Readout
from headstock.programs.saving.record import Record, SourceLine
from headstock.programs.saving.written import read, read_all, read_number, written, written_all, written_numbers
from headstock.programs.values import Value, shown

FORMAT = "headstock-program"
VERSION = 1


def as_json(record: Record) -> dict[str, Any]:
    """Give a record as JSON. Raises UserError for an output value that a file has no form for."""
    readout, domain = record.readout, record.domain
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": record.program,
        "says": record.says,
        "end": written(record.end),
        "source": [[line.file, line.number, line.text] for line in record.source],
        "domain": {
            "vocabulary": written_all(domain.vocabulary),
            "max_length": domain.max_length,
            "causal": domain.causal,
            "dtype": domain.dtype,
        },
        "start": readout.start,
        "names": list(readout.names),
        "outputs": {
            "ids": written_all(readout.of_id),
            "values": written_all(readout.of_id.values()),
            "numbers": written_all(readout.numbers),
        },
        "weights": record.weights,
        "certificate": _certificate(record.certificate),
        "anatomy": _anatomy(record.anatomy),
    }


def from_json(held: dict[str, Any]) -> Record:
    """Give the record that `as_json` wrote. Raises KeyError, TypeError, ValueError or another for what is damaged."""
    about = held["domain"]
    domain = Domain.of(read_all(about["vocabulary"]), about["max_length"], about["causal"], about["dtype"])
    outputs = held["outputs"]
    of_id = dict(zip(read_all(outputs["ids"]), read_all(outputs["values"]), strict=True))
    readout = Readout(domain, held["start"], tuple(held["names"]), of_id, read_all(outputs["numbers"]))
    _refuse_gaps(readout)
    return Record(
        held["program"],
        held["says"],
        read(held["end"]),
        tuple(SourceLine(file, number, text) for file, number, text in held["source"]),
        readout,
        _read_certificate(held["certificate"], domain),
        _read_anatomy(held["anatomy"]),
        held["weights"],
    )


def _refuse_gaps(readout: Readout) -> None:
    """Raise ValueError where a token id means nothing, or two things."""
    names, tokens = readout.names, readout.domain.vocabulary
    if list(names[: len(tokens)]) != [shown(token) for token in tokens] or len(set(names)) < len(names):
        raise ValueError("its names are not those of its vocabulary")
    if readout.start not in (None, len(tokens)) or not all(0 <= token < len(names) for token in readout.of_id):
        raise ValueError("it speaks of token ids that it has no name for")
    if not readout.of_id and not readout.numbers:
        raise ValueError("it says no value that the model can give")


# Certificate


def _certificate(one: Certificate) -> dict[str, Any]:
    return {
        "program": one.program,
        "trials": one.trials,
        "exhaustive": one.exhaustive,
        "compared": one.compared,
        "measured_error": one.measured_error,
        "decisions": [
            [decision.expression, decision.how, *written_numbers([decision.error, decision.margin])]
            for decision in one.decisions
        ],
    }


def _read_certificate(held: dict[str, Any], domain: Domain) -> Certificate:
    decisions = tuple(
        Decision(expression, how, read_number(error), read_number(margin))
        for expression, how, error, margin in held["decisions"]
    )
    return Certificate(
        held["program"],
        domain,
        decisions,
        held["trials"],
        held["exhaustive"],
        held["compared"],
        read_number(held["measured_error"]),
    )


# Anatomy


def _anatomy(one: Anatomy) -> dict[str, Any]:
    return {
        "layers": one.n_layers,
        "expressions": [_traced(expression) for expression in one.expressions],
        "heads": [asdict(head) for head in one.heads],
        "units": [asdict(part) for part in one.units],
        "columns": [
            {
                "name": column.name,
                "holds": [[held.name, held.line, held.since, held.until] for held in column.holds],
            }
            for column in one.columns
        ],
    }


def _traced(one: Traced) -> dict[str, Any]:
    said = {"name": one.name, "line": one.line, "source": one.source, "where": one.where, "how": one.how}
    if one.codes is None:
        return said
    codes: dict[str, Any] = {"values": written_all(map(_showable, one.codes))}
    if any(not _is_its_own(value, code) for value, code in one.codes.items()):
        codes["codes"] = list(one.codes.values())
    return {
        **said,
        "time": one.time,
        "terms": [[term.column, term.weight, term.name] for term in one.terms],
        "constant": one.constant,
        "error": one.error,
        **codes,
    }


def _is_its_own(value: Value, code: float) -> bool:
    return not isinstance(value, (str, tuple)) and value is not None and float(value) == code


def _showable(value: Value) -> Value:
    """Give a value as it is, or as a table shows it where a file has no form for it: it is only looked at."""
    plain = value is None or isinstance(value, (bool, int, str, tuple)) or hasattr(value, "denominator")
    return value if plain else shown(value)


def _read_anatomy(held: dict[str, Any]) -> Anatomy:
    columns = tuple(
        ColumnPart(number, column["name"], tuple(Held(*part) for part in column["holds"]))
        for number, column in enumerate(held["columns"])
    )
    heads = tuple(HeadPart(**{**head, "lines": tuple(head["lines"])}) for head in held["heads"])
    units = tuple(UnitPart(**part) for part in held["units"])
    expressions = tuple(_read_traced(one) for one in held["expressions"])
    return Anatomy(expressions, heads, units, columns, held["layers"])


def _read_traced(held: dict[str, Any]) -> Traced:
    said = (held["name"], held["line"], held["source"], held["where"], held["how"])
    if "values" not in held:
        return Traced(*said, None)
    values = read_all(held["values"])
    codes = held["codes"] if "codes" in held else [float(value) for value in values]
    return Traced(
        *said,
        held["time"],
        tuple(Term(*term) for term in held["terms"]),
        held["constant"],
        dict(zip(values, codes, strict=True)),
        held["error"],
    )
