"""Tasks of reading: what is asked for is told in the row, among much that is not asked for."""

from headstock.tasks.listed.entry import Entry
from headstock.tasks.options import Option, whole

ENTRIES = (
    Entry(
        "needle",
        "say the numbers that sentences among noise give to cities",
        "headstock.tasks.needle",
        "Needle",
        (
            Option("length", 28, "tokens before the questions, half as many in the shortest rows", whole(1)),
            Option("needles", 4, "sentences that give a city its number", whole(1)),
            Option("queries", 2, "questions at the end, of different cities", whole(1)),
            Option("cities", 8, "different cities; at least as many as needles", whole(1)),
            Option("numbers", 16, "different numbers; at least as many as needles", whole(1)),
            Option("noise", 16, "different words of noise", whole(1)),
        ),
    ),
    Entry(
        "distract",
        "say what a passage tells of its subject, among passages on other subjects",
        "headstock.tasks.distract",
        "Distract",
        (
            Option("irrelevant", 4, "irrelevant passages of a trained row at most; none at least", whole(0)),
            Option("beyond", 1, "how many times as many the hardest probe has, and every row has room for", whole(1)),
            Option("facts", 2, "facts of a passage", whole(1)),
            Option("questions", 2, "questions on the relevant subject, of different facts", whole(1)),
            Option("subjects", 9, "different subjects; more than a probe has irrelevant passages", whole(1)),
            Option("attributes", 2, "different attributes; at least as many as facts", whole(1)),
            Option("values", 8, "different values of each attribute", whole(2)),
            Option("filler", 0, "noise words among the facts of a passage", whole(0)),
        ),
    ),
)
