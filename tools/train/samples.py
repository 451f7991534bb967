# SPDX-License-Identifier: MIT
"""Training sequences and test prompts as token ids: filler with facts, and questions."""
import json
import random as random_module
import re

import numpy as np

from riddles import (CLASSIC, Magic, Secret, drill_pairs, numbers_riddle, text_riddle,
                     variables_riddle)

FIRST, ANSWER, TEMPLATE, FILLER = 4.0, 1.0, 0.1, 0.1  # weight of a token's loss
SHOWN_TEMPLATE, SHOWN_FILLER = 0.15, 0.04  # share of those tokens that have any loss
MIX = {"secret": 0.5, "magic": 0.2, "text": 0.2, "variables": 0.1}  # shares of the kinds of riddles
ON_THE_WAY = 0.3  # share of the questions that are inside the text instead of at its end
RULER_FILLER = ("The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.\n")


def grammar_text(grammar, n_paragraphs, seed):
    random = random_module.Random(seed)

    def sentence():
        text = random.choice(grammar["templates"])
        text = re.sub(r"\{(\w+)\}", lambda slot: random.choice(grammar["words"][slot[1]]), text)
        return text[0].upper() + text[1:]

    return "".join(" ".join(sentence() for _ in range(random.randint(3, 7))) + "\n"
                   for _ in range(n_paragraphs))


class Filler:
    """A long text as ids; facts may be inserted after its line breaks or its sentences."""

    def __init__(self, tokenizer, text):
        self.ids = np.array(tokenizer.next("\n" + text)[1:], np.int32)
        self.lines = np.flatnonzero(self.ids == tokenizer.newline) + 1
        ends = np.isin(self.ids, [tokenizer.sp.piece_to_id(p) for p in ".!?"])
        self.sentences = np.flatnonzero(ends[:-1] & tokenizer.begins_word[self.ids[1:]]) + 1

    def draw(self, random, n):
        """Returns ids and two lists of places in them: 0, after each line break, the end; after a
        sentence."""
        starts = self.lines[:np.searchsorted(self.lines, len(self.ids) - n)]
        start = int(random.choice(starts)) if len(starts) and n < len(self.ids) else 0
        ids = np.resize(self.ids[start:], n)  # repeated if the text is too short
        lines, sentences = (a[(a > start) & (a < start + n)] - start for a in (self.lines, self.sentences))
        lines = np.unique(np.concatenate([[0], lines, [n]]))
        return ids, lines, sentences if len(sentences) else lines


class Samples:
    def __init__(self, tokenizer, grammar_path, text=None, seed=0, mix=MIX, n_paragraphs=12000):
        with open(grammar_path) as file:
            grammar = json.load(file)
        self.tokenizer, self.random, self.mix = tokenizer, random_module.Random(seed), mix
        self.fillers = [Filler(tokenizer, grammar_text(grammar, n_paragraphs, 11))]
        self.held_out = Filler(tokenizer, grammar_text(grammar, n_paragraphs // 5, 12))
        self.rare = [Filler(tokenizer, RULER_FILLER * 100)]
        if text:
            self.fillers.append(Filler(tokenizer, text))

    def riddles(self, room):
        """Riddles with about `room` tokens or fewer, including the questions."""
        random, facts, questions = self.random, [], []
        used, target = 0, room * random.uniform(0.3, 1.0)
        while not facts or used < target:
            kind = random.choices(list(self.mix), self.mix.values())[0]
            if kind in ("secret", "magic"):
                style = Secret if kind == "secret" else Magic
                most = max(1, int((target - used) / 50))
                n_many = random.randint(0, 1) if most > 2 else 0
                new = numbers_riddle(random, style, random.randint(1, min(most, 8)), n_many)
            elif kind == "text":
                new = text_riddle(random, 1 if room < 300 else random.randint(1, 3))
            else:
                new = variables_riddle(random, random.randint(1, 4))
            taken = set(facts)
            subjects = {re.split(r" is:? | = ", f)[0] for f in facts}
            if any(re.split(r" is:? | = ", f)[0] in subjects for f in new[0]) or taken & set(new[0]):
                continue  # a subject used twice would have two answers
            shift = len(facts)
            facts += new[0]
            questions += [(p, a, [i + shift for i in of]) for p, a, of in new[1]]
            used += sum(len(self.tokenizer.sp.encode(t)) + 3 for t in new[0])
            used += sum(len(self.tokenizer.sp.encode(p)) + 8 * len(of) for p, _, of in new[1])
        return facts, questions

    def assemble(self, filler, places, facts, questions):
        """Returns ids and loss weights. places: of facts, then of questions (the length of filler: at the
        end)."""
        tok, ids, weights = self.tokenizer, [self.tokenizer.bos], [0.0]

        def put(new, weight, shown=1.0):
            ids.extend(new)
            weights.extend(weight if shown == 1.0 or self.random.random() < shown else 0.0 for _ in new)

        def put_filler(begin, end):
            put(filler[begin:end].tolist(), FILLER, SHOWN_FILLER)
            if end == len(filler) and ids[-1] not in (tok.newline, tok.bos):
                put([tok.newline], 0.0)

        at, order = 0, {}
        events = sorted([(p, 0, i) for i, p in enumerate(places[:len(facts)])]
                        + [(p, 1, i) for i, p in enumerate(places[len(facts):])])
        for place, is_question, i in events:
            if place > at:
                put_filler(at, place)
                at = place
            if not is_question:
                order[i] = len(order)
                fact = facts[i] if facts[i].startswith(" ") else "\n" + facts[i] + "\n"
                put(tok.next(fact), TEMPLATE, SHOWN_TEMPLATE)
                continue
            prompt, answer, of = questions[i]
            put(tok.next(prompt.rstrip(" ")), TEMPLATE, SHOWN_TEMPLATE)
            new = tok.next(answer([order[f] for f in of]))
            ids.extend(new)
            weights.extend(self.answer_weights(new))
        return ids, weights

    def drill(self, n_tokens):
        """Lists of lines "KEY: VALUE", each followed by the same lines in another order; their values give
        the loss."""
        ids, weights = [self.tokenizer.bos], [0.0]
        while True:
            new, new_weights = self.drill_list(self.random.randint(2, 9))
            if len(ids) + len(new) > n_tokens:
                n = n_tokens - len(ids)
                return ids + new[:n], weights + new_weights[:n]
            ids += new
            weights += new_weights

    def drill_list(self, n_pairs):
        tok, lines = self.tokenizer, []
        for (head, line), _ in zip(drill_pairs(self.random, tok.words), range(n_pairs)):
            ids, start = tok.next("\n" + line)[1:], tok.next("\n" + head)[1:]
            lines.append((ids, next((i for i, (a, b) in enumerate(zip(ids, start)) if a != b), len(start))))
        ids = [i for line, _ in lines for i in line]
        weights = [0.0] * len(ids)
        self.random.shuffle(lines)
        for line, n_same in lines:
            ids += line
            weights += [0.0] * n_same + self.answer_weights(line[n_same:])
        return ids, weights

    def answer_weights(self, ids):
        """Weights the first token of a value most: it tells facts apart, and the next tokens follow from
        it."""
        begins, tok = True, self.tokenizer
        weights = []
        for i in ids:
            bare = i == tok.space
            weights.append(FIRST if begins and not bare and i != tok.newline else ANSWER)
            begins = bare or (begins and i in tok.separators)
        return weights

    def training(self, n_tokens, drill=0.0):
        """Ids and loss weights of one sequence of about n_tokens (up to a tenth more)."""
        if self.random.random() < drill:
            return self.drill(n_tokens)
        while True:
            ids, weights = self._training(n_tokens)
            if len(ids) <= 1.1 * n_tokens:
                return ids, weights

    def _training(self, n_tokens):
        random = self.random
        facts, questions = self.riddles(n_tokens * 0.8 if n_tokens <= 1024 else n_tokens ** 0.5 * 30)
        encode = self.tokenizer.next
        used = sum(len(encode("\n" + text + "\n")) for text in facts)
        used += sum(len(encode(p.rstrip(" "))) + len(encode(a(range(len(of))))) for p, a, of in questions)
        n = max(0, n_tokens - used)
        source = random.choice(self.rare if random.random() < 0.05 else self.fillers)
        filler, cuts, sentences = source.draw(random, n)
        places = [int(random.choice(sentences if f.startswith(" ") else cuts)) for f in facts]
        for a, b in zip(range(len(facts)), range(1, len(facts))):  # chains must be in order
            if facts[b].startswith("VAR ") and facts[b].split()[-1] == facts[a].split()[1]:
                places[b] = int(random.choice(cuts[cuts >= places[a]]))
        random.shuffle(questions)
        for _, _, of in questions:
            first = max(places[i] for i in of)
            later = int(random.choice(cuts[cuts >= first]))
            places.append(later if random.random() < ON_THE_WAY else n)
        return self.assemble(filler, places, facts, questions)

    def batch(self, n_tokens, batch, drill=0.0):
        """ids, rows, and two pairs of target ids and weights, as arrays for Llama.hidden(ids, rows): for the
        next tokens, and for the ones after them, which count only in answers. drill: share of the sequences
        that are drills."""
        samples = [self.training(n_tokens, drill) for _ in range(batch)]
        n = max(len(ids) for ids, _ in samples)
        all_ids = np.zeros((batch, n), np.int64)
        rows = [np.flatnonzero(np.array(w[1:n])) for _, w in samples]
        n_rows = max(map(len, rows))
        all_rows, weights = np.zeros((batch, n_rows), np.int64), np.zeros((2, batch, n_rows), np.float32)
        for b, ((ids, w), row) in enumerate(zip(samples, rows)):
            all_ids[b, :min(n, len(ids))] = ids[:n]
            all_rows[b] = row[-1] if len(row) else 0
            all_rows[b, :len(row)] = row
            w = np.array(w[:n] + [0.0], np.float32)
            weights[0, b, :len(row)] = w[row + 1]
            weights[1, b, :len(row)] = np.where(w[row + 2] < ANSWER, 0, w[row + 2])
        padded = np.pad(all_ids, ((0, 0), (0, 1)))
        targets = [np.take_along_axis(padded[:, k:], all_rows, 1) for k in (1, 2)]
        return all_ids[:, :-1], all_rows, targets[0], weights[0], targets[1], weights[1]

    def test(self, kind, n_tokens, depth, n_facts, random):
        """A prompt as in `snapkv eval needle`, with the ids of its answer: (prompt, answer)."""
        if kind == "text":
            head = "The best thing to do in San Francisco is"
            facts = [f"{head} {CLASSIC}."]
            question = (f"\nQuestion: What is the best thing to do in San Francisco?\nAnswer: {head}",
                        lambda order: f" {CLASSIC}.\n", [0])
        elif kind == "variables":
            facts, (question,) = variables_riddle(random, n_facts - 1)
        elif kind == "multi-value":
            while True:
                facts, (question,) = numbers_riddle(random, Secret, 0, 1)
                if len(facts) == n_facts:
                    break
        else:
            n = 1 if kind == "single" else n_facts
            facts, questions = numbers_riddle(random, Secret, n, 0)
            question = questions[0]
            if kind == "multi-query":
                facts, question = numbers_query(random, n_facts)
        return self.place(facts, question, n_tokens, depth, random, kind == "variables")

    def place(self, facts, question, n_tokens, depth, random, in_order):
        used = sum(len(self.tokenizer.next("\n" + f + "\n")) for f in facts)
        prompt = self.tokenizer.next(question[0].rstrip(" "))
        n = n_tokens - used - len(prompt) - 2
        filler, cuts, _ = self.held_out.draw(random, n)
        depths = [depth] + [random.random() for _ in facts[1:]]
        places = [int(cuts[cuts <= d * n][-1]) for d in (sorted(depths) if in_order else depths)]
        ids, weights = self.assemble(filler, places + [n], facts, [question])
        n_answer = next(i for i, w in enumerate(reversed(weights)) if w < ANSWER)
        return ids[:-n_answer], ids[-n_answer:]


def numbers_query(random, n):
    """Facts for n > 1 names, and a question that asks for all of them."""
    while True:
        facts, questions = numbers_riddle(random, Secret, n, 0)
        for question in questions:
            if len(question[2]) == n:
                return facts, question
