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
    Entry(
        "aab",
        "go on with aabaab... beyond the length that was trained on",
        "headstock.tasks.aab",
        "Aab",
        (Option("length", 12, "tokens in a row that is trained on; held-out ones have twice as many", whole(3)),),
    ),
    Entry(
        "addition",
        "say the digits of a sum",
        "headstock.tasks.addition",
        "Addition",
        (
            Option("digits", 3, "digits of either number", whole(1)),
            Option("reversed", "true", "whether the answer is written from the ones on", program_options.yes_or_no),
        ),
    ),
    Entry(
        "dyck",
        "say which bracket closes in nested brackets of several kinds",
        "headstock.tasks.dyck",
        "Dyck",
        (
            Option("kinds", 8, "kinds of brackets", whole(2)),
            Option("depth", 8, "brackets open at once, at most", whole(1)),
            Option("length", 32, "tokens in a row, an even number; at least twice the depth", whole(2)),
        ),
    ),
)
