"""What all the C programs share: comment, tokens, tables, and a main that reads lines."""

from collections.abc import Iterable, Sequence

from headstock.programs.back_to_code.spelling import Spelling

_PLACE = """
/* The place of a token in the alphabet, or -1. */
static int place_of(int id)
{
    int place;
    for (place = 0; place < READ; place++)
        if (TOKEN[place].id == id)
            return place;
    return -1;
}
"""

_MAIN = """
static int answer(const int *ids, int count, int *said)
{
    %s
}

static const char *word_of(int id)
{
    int at = 0;
    while (TOKEN[at].id != id)
        at++;
    return TOKEN[at].word;
}

/* Answers each line of tokens, or writes ? where it is not of the domain. */
int main(void)
{
    static char line[1 << 16];
    static int ids[1 << 15], said[1 << 15];
    while (fgets(line, sizeof line, stdin)) {
        int count = 0, known = strlen(line) + 1 < sizeof line, at, many;
        char *word;
        for (word = strtok(line, " \\t\\r\\n"); word; word = strtok(NULL, " \\t\\r\\n")) {
            for (at = 0; at < READ && strcmp(TOKEN[at].word, word) != 0; at++)
                ;
            if (at == READ)
                known = 0;
            else
                ids[count++] = TOKEN[at].id;
        }
        many = known ? answer(ids, count, said) : -1;
        if (many < 0)
            printf("?");
        for (at = 0; at < many; at++)
            printf(at ? " %%s" : "%%s", word_of(said[at]));
        printf("\\n");
    }
    return 0;
}
"""


def framed(
    lines: Iterable[str], spelt: Spelling, tables: str, function: str, answer: str, needs_places: bool = True
) -> str:
    """Give a whole program: a comment of lines, the tokens, the tables, the function, and a main that answers by it."""
    tokens = [(ident, spelt.word(ident)) for ident in (*spelt.read, *spelt.only_said)]
    written = "".join(f'    {{{ident}, "{_escaped(word)}"}},\n' for ident, word in tokens)
    comment = "\n".join(f" * {line}" for line in lines)
    return (
        f"/*\n{comment}\n */\n#include <stdio.h>\n#include <string.h>\n\n"
        f"enum {{ READ = {len(spelt.read)}, TOKENS = {len(tokens)} }};\n"
        "/* Tokens by id and as they are written; the first READ are read, the others only said. */\n"
        f"static const struct {{ int id; const char *word; }} TOKEN[TOKENS] = {{\n{written}}};\n"
        f"{tables}{_PLACE if needs_places else ''}\n{function}{_MAIN % answer}"
    )


def rows(declared: str, table: Iterable[Sequence[int | None]]) -> str:
    """Give a table, -1 for None."""
    return f"{declared} = {{\n" + "".join(f"    {{{_list(row)}}},\n" for row in table) + "};\n"


def numbers(declared: str, row: Sequence[int | None]) -> str:
    """Give a list of numbers, -1 for None."""
    return f"{declared} = {{{_list(row)}}};\n"


def _list(row: Iterable[int | None]) -> str:
    return ", ".join("-1" if number is None else str(number) for number in row)


def _escaped(word: str) -> str:
    """Write a word inside quotes; an escaped ? cannot begin a trigraph."""
    return word.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
