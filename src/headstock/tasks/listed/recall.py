"""Tasks of recall: what is asked for stands in the row itself, somewhere."""

from headstock.tasks.listed.entry import Entry
from headstock.tasks.options import Option, one_of, share, whole

ENTRIES = (
    Entry(
        "repeats",
        "say what comes next in a random sequence that comes again",
        "headstock.tasks.repeats",
        "Repeats",
        (
            Option("length", 32, "tokens of the longest sequence; rows are twice as long", whole(2)),
            Option("vocabulary", 64, "different tokens", whole(2)),
        ),
    ),
    Entry(
        "mqar",
        "say the value of every key that comes again after pairs of key and value",
        "headstock.tasks.mqar",
        "Mqar",
        (
            Option("length", 64, "tokens in a row", whole(4)),
            Option("vocabulary", 256, "different tokens: a blank, half of the rest keys, the others values", whole(4)),
            Option("pairs", 4, "pairs of key and value in a row", whole(1)),
            Option("power", 0.01, "how far off a key is asked for: near 0 mostly soon, 1 anywhere alike", share(1)),
            Option(
                "fillers",
                "random",
                "what stands elsewhere: random is any token, none blanks",
                one_of("random", "none"),
            ),
        ),
    ),
    Entry(
        "induction",
        "say what followed a trigger the first time, when it comes again at the end of a random row",
        "headstock.tasks.induction",
        "Induction",
        (
            Option("length", 32, "tokens of a trained row; the longest probe has eight times as many", whole(4)),
            Option("vocabulary", 16, "different tokens beside the trigger", whole(2)),
        ),
    ),
    Entry(
        "selective-copy",
        "give the tokens among blanks again, in order",
        "headstock.tasks.selective_copy",
        "SelectiveCopy",
        (
            Option("length", 32, "places before the marker; probes have as many and twice as many", whole(1)),
            Option("tokens", 8, "places that are filled", whole(1)),
            Option("vocabulary", 16, "different tokens beside blank and marker", whole(2)),
        ),
    ),
    Entry(
        "recall-noisy",
        "say the value of every key seen before, with noise among the pairs",
        "headstock.tasks.recall_noisy",
        "NoisyRecall",
        (
            Option("length", 64, "tokens in a row", whole(4)),
            Option("vocabulary", 16, "different tokens, half keys and half values", whole(2)),
            Option("noise", 0.2, "chance that noise stands in place of a pair; 0 is none", share(0.9, zero=True)),
            Option("noise_vocabulary", 16, "different tokens of noise", whole(1)),
        ),
    ),
    Entry(
        "recall-fuzzy",
        "say the value of every key seen before, keys and values of one to several tokens",
        "headstock.tasks.recall_fuzzy",
        "FuzzyRecall",
        (
            Option("length", 64, "tokens in a row", whole(3)),
            Option("vocabulary", 16, "different tokens, half for keys and half for values", whole(2)),
            Option("pairs", 4, "different keys in a row", whole(1)),
            Option("longest", 3, "tokens of the longest key, and of the longest value", whole(1)),
        ),
    ),
)
