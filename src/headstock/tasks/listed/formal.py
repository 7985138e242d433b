"""Tasks of rules: what is right follows from a rule that can be written down."""

from headstock.tasks import program_options
from headstock.tasks.listed.entry import Entry
from headstock.tasks.options import Option, whole

ENTRIES = (
    Entry(
        "program",
        "say what a program of the zoo gives at every position of a random sequence",
        "headstock.tasks.program",
        "ProgramTask",
        (
            Option(
                "name",
                "hist",
                "a name of `headstock list programs`; the program's own choices are written as options too",
                program_options.program_name,
            ),
            Option("length", program_options.OWN, "tokens of a sequence; own is as the program says", whole(1)),
            Option(
                "vocab",
                program_options.OWN,
                "the tokens: abcd is four characters, 1,,2,,3 whole numbers, red,,green words",
                program_options.vocabulary,
            ),
            Option(
                "causal",
                program_options.OWN,
                "whether a position sees only what stands before it; own is true where the program has that mode",
                program_options.yes_or_no,
            ),
        ),
        program_options.completed,
    ),
)
