# SPDX-License-Identifier: MIT
"""A model class for EleutherAI's lm-evaluation-harness (the package ``lm-eval``).

    python -m snapkv.lm_eval --model snapkv --tasks lambada_openai \\
        --model_args pretrained=model.gguf,kv_policy=snapkv,kv_budget=512

or, from Python:

    from snapkv.lm_eval import SnapKVLM

    lm_eval.simple_evaluate(model=SnapKVLM("model.gguf", kv_budget=512), tasks=["lambada_openai"])

The context of a request is read as a prompt, so its cache is compressed; the continuation is then
read token by token, as when the model writes it. With ``kv_policy=full`` nothing is compressed.
"""

import logging

import numpy
from lm_eval import utils
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model

from ._library import UsageError
from ._model import Model, decode

_log = logging.getLogger(__name__)


@register_model("snapkv")
class SnapKVLM(TemplateLM):
    """pretrained: a GGUF file, a Hugging Face folder or a :class:`snapkv.Model`.

    batch_size: continuations of one context that are read together. max_length: tokens of a context
    and its continuation (default: the model's own limit); the beginning of longer ones is cut off,
    with a warning. max_gen_toks: tokens of an answer whose task sets no limit. Other keywords are
    options (:func:`snapkv.options`), as kv_policy, kv_budget and n_threads.
    """

    def __init__(self, pretrained, batch_size=1, max_length=None, max_gen_toks=256, device=None,
                 max_batch_size=None, **given):  # the harness always passes these two
        super().__init__()
        del max_batch_size
        if device is not None and device != "cpu":
            given["device"] = device
        self._given = given
        self._model = (pretrained if isinstance(pretrained, Model)
                       else Model(pretrained, **given))
        self._batch_size = 1 if batch_size in (None, "auto") else int(batch_size)
        self._max_gen_toks = int(max_gen_toks)
        self._max_length = int(max_length or self._model.session(**given).n_ctx)
        begin = self._model.tokenize("")
        self._begin = begin[0] if begin else None

    # --- what the harness asks of a TemplateLM
    @property
    def eot_token_id(self):
        """The first id that ends an answer."""
        for token in range(self._model.info["n_vocab"]):
            if self._model.is_end_of_generation(token):
                return token
        raise UsageError(2, "the model has no token that ends an answer")

    @property
    def prefix_token_id(self):
        """What stands before a text that has no context: the token for a text's beginning."""
        return self._begin if self._begin is not None else self.eot_token_id

    @property
    def max_length(self):
        """Tokens of a context and its continuation."""
        return self._max_length

    @property
    def tokenizer_name(self):
        """The model's file: answers that are kept for later runs belong to it."""
        return self._model.info["path"]

    def chat_template(self, chat_template=False):
        """The template is the model's own."""
        if isinstance(chat_template, str):
            raise UsageError(2, f"chat_template is \"{chat_template}\"; it must be left out: the "
                                "model's own is used")
        return "the model's own" if chat_template else None

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        """The text of a conversation in the model's template."""
        return self._model.chat_text(chat_history, add_generation_prompt=add_generation_prompt)

    def tok_encode(self, string, add_special_tokens=None, **_kwargs):
        """Ids of a text, with the token for its beginning where the model wants one."""
        ids = self._model.tokenize(string, add_special=add_special_tokens is not False)
        if ids[:2] == [self._begin] * 2:  # a chat template had written it already
            del ids[0]
        return ids

    # --- requests
    def _loglikelihood_tokens(self, requests, disable_tqdm=False, **_kwargs):
        """(log-likelihood, whether it is the greedy answer) of each ((context, continuation) texts,
        context ids, continuation ids)."""
        del disable_tqdm
        groups = {}  # context: indices of the requests that it begins
        pairs = [self._cut(context, continuation) for _, context, continuation in requests]
        for i, (context, _) in enumerate(pairs):
            groups.setdefault(tuple(context), []).append(i)
        results = [None] * len(pairs)
        for context, members in groups.items():
            document = (self._model.prefill(context[:-1], **self._given)
                        if len(members) > 1 and len(context) > 1 else None)
            for begin in range(0, len(members), self._batch_size):
                batch = members[begin:begin + self._batch_size]
                sessions = [self._read(context, document) for _ in batch]
                found = _score(sessions, [pairs[i][1] for i in batch])
                for i, result in zip(batch, found):
                    results[i] = result
                    self.cache_hook.add_partial("loglikelihood", requests[i][0], result)
        return results

    def _cut(self, context, continuation):
        most = self._max_length + 1  # the last token is never read, only predicted
        if len(continuation) >= most:
            raise UsageError(2, f"a continuation of {len(continuation)} tokens; it must be shorter "
                                f"than max_length, {self._max_length}")
        extra = len(context) + len(continuation) - most
        if extra > 0:
            _log.warning("a context of %d tokens: the first %d do not fit and are cut off",
                         len(context), extra)
        return context[max(0, extra):], continuation

    def _read(self, context, document):
        if document is not None:
            return document.session(context[-1:], **self._given)
        session = self._model.session(**self._given)
        session.prefill(context)
        return session

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        """Log-likelihoods of whole texts. The first token of each window is its prompt, so only
        kv_decode_limit compresses here."""
        del disable_tqdm
        totals = []
        for (text,) in (request.args for request in requests):
            windows = utils.get_rolling_token_windows(
                token_list=self.tok_encode(text, add_special_tokens=False),
                prefix_token=self.prefix_token_id, max_seq_len=self._max_length, context_len=1)
            pairs = [(None, *utils.make_disjoint_window(window)) for window in windows]
            total = sum(score for score, _ in self._loglikelihood_pieces(pairs))
            totals.append(total)
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), total)
        return totals

    def _loglikelihood_pieces(self, pairs):
        for _, context, continuation in pairs:
            context, continuation = self._cut(context, continuation)
            yield _score([self._read(context, None)], [continuation])[0]

    def generate_until(self, requests, disable_tqdm=False):
        """Answers, each until one of its stop strings or its limit."""
        del disable_tqdm
        answers = []
        for request in requests:
            text, given = request.args
            chosen = _generation(given, self._max_gen_toks)
            ids = self.tok_encode(text)
            ids, _ = self._cut(ids, [0] * chosen["max_tokens"])
            session = self._model.session(**self._given)
            session.prefill(ids)
            answers.append(session.generate(history=ids, **chosen))
            self.cache_hook.add_partial("generate_until", request.args, answers[-1])
        return answers


def _generation(given, max_gen_toks):
    """The harness's settings of an answer as options of the engine."""
    given = dict(given)
    until = given.pop("until", None) or []
    samples = given.pop("do_sample", given.get("temperature", 0) > 0)
    temperature = given.pop("temperature", 1.0)
    return {"stop": [until] if isinstance(until, str) else until,
            "max_tokens": int(given.pop("max_gen_toks", max_gen_toks)),
            "temperature": temperature if samples else 0, **given}


def _score(sessions, continuations):
    """(log-likelihood, whether greedy) of a continuation after each session, read together."""
    totals, greedy = [0.0] * len(sessions), [True] * len(sessions)
    for step in range(max(map(len, continuations))):
        alive = [i for i, ids in enumerate(continuations) if step < len(ids)]
        for i in alive:
            logits, token = sessions[i].logits.astype(numpy.float64), continuations[i][step]
            highest = logits.max()
            totals[i] += float(logits[token] - highest - numpy.log(numpy.exp(logits - highest).sum()))
            greedy[i] = greedy[i] and int(logits.argmax()) == token
        further = [i for i in alive if step + 1 < len(continuations[i])]
        if further:
            decode([sessions[i] for i in further], [continuations[i][step] for i in further])
    return list(zip(totals, greedy))


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate
    cli_evaluate()
