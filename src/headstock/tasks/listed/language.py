"""Tasks of language: real text, and sentences of which only word order tells the meaning."""

from headstock.tasks import corpora
from headstock.tasks.listed.entry import Entry
from headstock.tasks.options import Option, share, tokenizer_name, whole

ENTRIES = (
    Entry(
        "text",
        "predict the next token of real text (a named corpus, a file or a folder)",
        "headstock.tasks.text",
        "TextTask",
        (
            Option(
                "corpus",
                "python-docs",
                "python-docs, shakespeare, or the path of a text file or a folder of them",
                corpora.corpus_name,
                corpora.state_of,
            ),
            Option("tokenizer", "byte", "byte, char, or bpe:N with a vocabulary of N", tokenizer_name),
            Option("context", 64, "tokens in a row", whole(1)),
            Option("held_out", 0.1, "share of the text's characters, from its end, that is held out", share(0.5)),
        ),
    ),
    Entry(
        "crossing",
        "say which of two nouns a pronoun meant, where only word order tells",
        "headstock.tasks.crossing",
        "Crossing",
        (Option("held_out", 0.2, "share of the noun pairs, in order, that is held out", share(0.5)),),
    ),
    Entry(
        "crossing-leaky",
        "the same with animals that cross places, which a bag of words can answer: a control",
        "headstock.tasks.crossing",
        "LeakyCrossing",
        (Option("held_out", 0.25, "share of the pairs of animal and place that is held out", share(0.5)),),
    ),
)
