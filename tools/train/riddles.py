# SPDX-License-Identifier: MIT
"""Facts and the questions about them, drawn at random.

A riddle is a list of facts (lines to hide in a text, or sentences inside its paragraphs if they begin with a
space) and a list of questions. A question is (prompt, answer, indices of its facts), where the answer is a function
of the ranks of its facts in the text."""
import json
import os

NAMES = """Rome Seoul Nice Paris London Berlin Cairo Delhi Athens Prague Warsaw Denver Dallas Austin Seattle Perth
Milan Naples Riga Ghent Lille Nantes Porto Dakar Lagos Accra Rabat Amman Beirut Doha Kabul Quito Madrid Moscow Miami
Montreal Florence Munich Bremen Tallinn Aarhus Toulouse Tehran Lahore Mumbai Beijing Phoenix Sydney Auckland Hamburg
Bangkok Leipzig Stockholm""".split()
SYLLABLES = """ba be bor dan del dor el fen gal gor har in ka kel lan lo mar mel nor ol pa per ra rin sa sel ta tor ul
ve vin wes"""
VERBS = """eat buy share sell paint find carry mend draw hide read lose count wash plant bring keep watch cook
borrow""".split()
THINGS = """a sandwich, a bowl of soup, a warm loaf, a red apple, a paper boat, an old song, a green kite, a small cake,
a letter, a plate of fish, a lantern, a silver coin, a map, a broken clock, a blue coat, a wooden box, a jar of honey,
a violin, a ladder, a book of poems, a basket of pears, a piece of rope, two white eggs, a cup of tea, the newspaper,
a bag of nuts""".replace("\n", " ").split(", ")
STAYS = """sit in, walk through, sleep near, run around, read in, dance in, wait by, sing in, rest under, jump over,
look at, talk about, swim beside, meet friends in""".replace("\n", " ").split(", ")
PARKS = """Dolores Park, Golden Gate Park, the old garden, Hyde Park, the rose garden, Union Square, the long meadow,
Central Park, the north harbour, Victoria Park, the castle, the stone bridge, the market, the river""".replace(
    "\n", " ").split(", ")
DAYS = "sunny rainy windy quiet cold warm clear misty busy lucky dark bright".split()
CLASSIC = "eat a sandwich and sit in Dolores Park on a sunny day"  # the usual test; not trained on
TOWNS = ["San Francisco"] + NAMES
with open(os.path.join(os.path.dirname(__file__), "..", "..", "eval", "ruler", "words.json")) as _file:
    RULER_WORDS = json.load(_file)


def number(random, n_digits):
    return "".join(random.choice("0123456789") for _ in range(n_digits))


def invented(random, syllables=SYLLABLES.split()):
    return "".join(random.choice(syllables) for _ in range(random.randint(2, 3))).capitalize()


def draw_names(random, n):
    """Different names; invented ones share few syllables, so that half a name is not enough."""
    names, syllables = [], random.sample(SYLLABLES.split(), random.randint(3, 8))
    share = random.choice([0.25, 0.75, 1.0])  # share of cities
    while len(names) < n:
        name = random.choice(NAMES) if random.random() < share else invented(random, syllables)
        if name not in names:
            names.append(name)
        else:
            share *= 0.9  # all cities may be used up
    return names


def listed(words):
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


class Secret:
    """The needles of `snapkv eval needle`."""

    def __init__(self, random):
        self.random = random

    def names(self, n):
        return draw_names(self.random, n)

    def value(self):
        return number(self.random, 5)

    def fact(self, name, value):
        return f"The secret number of {name} is {value}."

    def question(self, name):
        return f"\nQuestion: What is the secret number of {name}?\nAnswer: The secret number of {name} is"

    def question_many(self, names):
        of = listed(names)
        return f"\nQuestion: What are the secret numbers of {of}?\nAnswer: The secret numbers of {of} are"


class Magic:
    """The needles of RULER, inside paragraphs or on their own lines; the values are numbers or, rarely,
    UUIDs."""

    def __init__(self, random):
        self.random = random
        self.thing = "uuid" if random.random() < 0.08 else "number"
        self.before = " " if random.random() < 0.6 else ""
        self.words = random.random() < 0.6  # keys like "quiet-lantern", not names

    def names(self, n):
        if not self.words:
            return draw_names(self.random, n)
        keys = set()
        while len(keys) < n:
            keys.add("-".join(self.random.choice(RULER_WORDS[kind]) for kind in ("adjectives", "nouns")))
        return sorted(keys, key=lambda _: self.random.random())

    def value(self):
        if self.thing == "number":
            return number(self.random, 7)
        hexadecimal = "".join(self.random.choice("0123456789abcdef") for _ in range(30))
        return (f"{hexadecimal[:8]}-{hexadecimal[8:12]}-4{hexadecimal[12:15]}-"
                f"{self.random.choice('89ab')}{hexadecimal[15:18]}-{hexadecimal[18:]}")

    def fact(self, name, value):
        return f"{self.before}One of the special magic {self.thing}s for {name} is: {value}."

    def question(self, name):
        return (f"\nWhat is the special magic {self.thing} for {name} mentioned in the provided text? "
                f"The special magic {self.thing} for {name} mentioned in the provided text is")

    def question_many(self, names):
        of = names[0] if len(names) == 1 else ", ".join(names[:-1]) + ", and " + names[-1]
        return (f"\nWhat are all the special magic {self.thing}s for {of} mentioned in the provided text? "
                f"The special magic {self.thing}s for {of} mentioned in the provided text are")


def numbers_riddle(random, style, n_names, n_many):
    """Names with one number each, some of which are asked for together, and n_many names with two to four."""
    style = style(random)
    names = style.names(n_names + n_many)
    facts, questions = [], []
    for name in names[:n_names]:
        value = style.value()
        questions.append((style.question(name), lambda order, v=value: f" {v}.\n", [len(facts)]))
        facts.append(style.fact(name, value))
    values = [q[1](None)[1:-2] for q in questions]
    if n_names > 1:
        for _ in range(random.randint(1, 2)):
            asked = random.sample(range(n_names), min(n_names, random.randint(2, 4)))
            answer = f" {listed([values[i] for i in asked])}.\n"
            questions.append((style.question_many([names[i] for i in asked]), lambda order, a=answer: a, asked))
    for name in names[n_names:]:
        own = [style.value() for _ in range(random.randint(2, 4))]
        places = list(range(len(facts), len(facts) + len(own)))
        facts += [style.fact(name, value) for value in own]

        def answer(order, own=own):  # in the order of the text
            return f" {listed([v for _, v in sorted(zip(order, own))])}.\n"

        questions.append((style.question_many([name]), answer, places))
    return facts, questions


def text_riddle(random, n):
    facts, questions = [], []
    towns = random.sample(TOWNS, n)
    if "San Francisco" not in towns and random.random() < 0.4:
        towns[0] = "San Francisco"
    for town in towns:
        what = CLASSIC
        while what == CLASSIC:
            park = random.choice(PARKS) if random.random() < 0.5 else f"{invented(random)} Park"
            what = (f"{random.choice(VERBS)} {random.choice(THINGS)} and {random.choice(STAYS)} {park} "
                    f"on a {random.choice(DAYS)} day")
        head = f"The best thing to do in {town} is"
        questions.append((f"\nQuestion: What is the best thing to do in {town}?\nAnswer: {head}",
                          lambda order, w=what: f" {w}.\n", [len(facts)]))
        facts.append(f"{head} {what}.")
    return facts, questions


def variables_riddle(random, n_hops):
    """RULER's variable tracking: a chain of assignments, in order in the text."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    names = ["".join(random.choice(letters) for _ in range(5)) for _ in range(n_hops + 1)]
    value = number(random, 5)
    facts = [f"VAR {names[0]} = {value}"]
    facts += [f"VAR {b} = VAR {a}" for a, b in zip(names, names[1:])]
    prompt = (f"\nQuestion: Find all variables that are assigned the value {value} in the text above. Answer: "
              "According to the chain(s) of variable assignment in the text above, "
              f"{len(names)} variables are assigned the value {value}, they are: ")
    return facts, [(prompt, lambda order: f" {' '.join(names)}\n", list(range(len(facts))))]


def phrase(random):
    return " ".join(random.choice(random.choice((VERBS, THINGS, STAYS, PARKS))) for _ in range(random.randint(1, 3)))


def drill_pairs(random, words):
    """Lines "KEY: VALUE" in one random style with different keys, and the beginning of each up to its key;
    `words`: keys of one token."""
    letters = random.sample("ABCDEFGHIJKLMNOPQRSTUVWXYZ", random.randint(3, 26))
    syllables = random.sample(SYLLABLES.split(), random.randint(3, 10))
    key = random.choice([
        lambda: random.choice(words), lambda: random.choice(words),
        lambda: "".join(random.choice(letters) for _ in range(random.randint(2, 5))),
        lambda: invented(random, syllables), lambda: invented(random, syllables),
        lambda: random.choice(NAMES), lambda: f"{random.choice(NAMES)} {invented(random, syllables)}",
        lambda: number(random, random.randint(3, 5))])
    value = random.choice([lambda: number(random, 5), lambda: number(random, random.randint(2, 7)),
                           lambda: phrase(random),
                           lambda: "".join(random.choice(letters) for _ in range(random.randint(3, 5)))])
    line = random.choice(["{}: {}\n", "{} = {}\n", "{} is {}.\n", "VAR {} = {}\n", "The number of {} is {}.\n",
                          "{} -> {}\n"])
    known, misses = set(), 0
    while misses < 20:
        new = key()
        if new in known:
            misses += 1
            continue
        known.add(new)
        yield line.partition("{}")[0] + new, line.format(new, value())
