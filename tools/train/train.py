#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains the needle model on generated text, on a CPU or a GPU; resumable. README.md says how.

    train.py train --start models/needle.gguf --out DIR --minutes N
    train.py score MODEL.gguf
    train.py average OUT.gguf MODEL.gguf...
"""
import argparse
import multiprocessing
import os
import random as random_module
import signal
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F

from gguf import read_gguf, write_gguf
from model import Llama
from muon import Muon
from samples import ANSWER, MIX, Samples
from tokenizer import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
GRAMMAR = os.path.join(HERE, "..", "..", "eval", "common", "haystack_grammar.json")
# until this share of the time: lengths of sequences (short ones teach the most per second), share
# of drills
STAGES = [(0.15, (128, 256, 256), 0.5), (0.30, (128, 256, 512), 0.35), (0.35, (256, 512, 512), 0.15),
          (0.40, (512, 1024), 0.1), (0.45, (1024, 2048), 0.05), (0.50, (2048, 4096), 0.0),
          (1.0, (2048, 4096, 4096, 7900), 0.0)]
WARM_UP_STEPS = 50
LONGEST_STEP = 60  # seconds; a longer step means that the process was stopped
LAST_RATE = 0.1  # learning rate at the end, as a share of the highest
SUITE = [("single", 1000, 1), ("multi-key", 1000, 4), ("multi-value", 1000, 4), ("multi-query", 1000, 4),
         ("text", 1000, 1), ("variables", 1000, 2)]


def load_samples(args, metadata, seed):
    text = None
    if getattr(args, "text", None):
        with open(args.text, encoding="utf-8") as file:
            text = file.read()
    mix = dict(MIX, **dict((kind, float(share)) for kind, share in getattr(args, "mix", [])))
    return Samples(Tokenizer(metadata), GRAMMAR, text, seed, mix, args.paragraphs)


def device_of(args):
    torch.set_num_threads(args.threads)
    return args.device or ("cuda" if torch.cuda.is_available() else "cpu")


def autocast(device, dtype="bf16"):
    return torch.autocast(device, torch.bfloat16, enabled=dtype == "bf16")


@torch.no_grad()
def score(model, samples, kind, n_tokens, n_facts, n_prompts, device, dtype="bf16"):
    """Share of held-out prompts whose whole answer is generated greedily; depths are spread evenly."""
    random, right = random_module.Random(f"{kind} {n_tokens} {n_facts}"), 0
    for i in range(n_prompts):
        prompt, answer = samples.test(kind, n_tokens, (i + 0.5) / n_prompts, n_facts, random)
        ids = torch.tensor([prompt + answer[:-1]], device=device)
        rows = torch.arange(len(prompt) - 1, ids.shape[1], device=device)[None]
        with autocast(device, dtype):
            found = model(ids, rows)[0].argmax(-1)
        right += found.tolist() == answer
    return right / n_prompts


def nll_of(logits, targets):
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)


def weighted_mean(values, weights):
    return (values * weights).sum() / weights.sum().clamp(min=1)


def loss_of(model, batch, device, ahead=0.0, alone=False):
    """The loss of the next tokens, plus `ahead` times that of the ones after them (`alone`: without an effect
    on the rest of the model); and the mean loss of the answers' tokens."""
    ids, rows, *both = (torch.from_numpy(a).to(device) for a in batch)
    (targets, weights), (ahead_targets, ahead_weights) = both[:2], both[2:]
    with autocast(device):
        hidden = model.hidden(ids, rows)
        logits = model.logits(hidden)
        ahead_logits = model.logits_ahead(hidden, alone) if ahead > 0 else None
    nll = nll_of(logits, targets)
    loss = weighted_mean(nll, weights)
    if ahead > 0:
        loss = loss + ahead * weighted_mean(nll_of(ahead_logits, ahead_targets), ahead_weights)
    return loss, nll.detach()[weights >= ANSWER].mean().item()


class Team:
    """The processes of a CPU run, each of which computes a part of every step; there may be only one."""

    def __init__(self, args, rank):
        self.rank, self.size = rank, args.processes
        if self.size == 1:
            return
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", init_method=f"file://{meeting_place(args)}", rank=rank,
                                world_size=self.size)

    def agree(self, *numbers):
        """Returns the first process's numbers in every process."""
        if self.size == 1:
            return numbers
        shared = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(shared, 0)
        return shared.tolist()

    def same(self, tensors):
        """Copies the first process's values to all processes."""
        for tensor in tensors if self.size > 1 else []:
            dist.broadcast(tensor, 0)

    def average(self, tensors):
        """Averages the tensors over the processes, in place."""
        if self.size == 1:
            return
        together = torch.cat([t.flatten() for t in tensors])
        dist.all_reduce(together)
        for tensor, part in zip(tensors, (together / self.size).split([t.numel() for t in tensors])):
            tensor.copy_(part.view_as(tensor))


def meeting_place(args):
    return os.path.abspath(os.path.join(args.out, "processes"))


class Run:
    """A training run: model, optimizers, seconds spent; saved as last.pt and last.gguf."""

    def __init__(self, args, team):
        self.args, self.team, self.device = args, team, device_of(args)
        self.path, gguf = os.path.join(args.out, "last.pt"), os.path.join(args.out, "last.gguf")
        os.makedirs(args.out, exist_ok=True)
        saved = torch.load(self.path, map_location="cpu") if os.path.exists(self.path) else None
        if saved and "ahead" not in saved["model"]:
            raise ValueError(f"{self.path} is of an older train.py: begin another --out with --start {gguf}")
        metadata, tensors = read_gguf(gguf if saved else args.start)
        self.model = Llama(metadata, tensors)
        self.seconds, self.step = 0.0, 0
        if saved:
            self.model.load_state_dict(saved["model"])
            self.seconds, self.step = saved["seconds"], saved["step"]
        elif args.insert_layers:
            self.model.insert_layers(args.insert_layers)
        self.model.to(self.device)
        matrices = [p for n, p in self.model.named_parameters() if n.startswith("blk.") and p.ndim == 2]
        others = [p for n, p in self.model.named_parameters() if not (n.startswith("blk.") and p.ndim == 2)]
        adamw = dict(betas=(0.9, 0.98), weight_decay=0.01)
        if args.optimizer == "muon":
            self.optimizers = [Muon(matrices), torch.optim.AdamW(others, **adamw)]
        else:
            self.optimizers = [torch.optim.AdamW(self.model.parameters(), **adamw)]
        for optimizer, state in zip(self.optimizers, saved["optimizers"] if saved else []):
            optimizer.load_state_dict(state)
        team.same([p.data for p in self.model.parameters()])
        seed = args.seed + self.step
        self.lengths = random_module.Random(seed)  # the same in all processes
        self.samples = load_samples(args, metadata, seed=seed + 1_000_003 * team.rank)

    def save(self):
        torch.save({"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers],
                    "seconds": self.seconds, "step": self.step}, self.path + ".new")
        os.replace(self.path + ".new", self.path)
        self.model.save_gguf(os.path.join(self.args.out, "last.gguf"), self.args.n_ctx)

    def set_rate(self, share):
        rate = self.args.rate * (LAST_RATE + (1 - LAST_RATE) * (1 - share))
        for group in (g for o in self.optimizers for g in o.param_groups):
            group["lr"] = rate * min(1, (self.step + 1) / WARM_UP_STEPS)

    def train_step(self, n_tokens, drill):
        n_sequences = self.args.tokens_per_step // self.team.size // n_tokens
        batch = self.samples.batch(n_tokens, max(1, n_sequences), drill)
        loss, answer_nll = loss_of(self.model, batch, self.device, self.args.look_ahead,
                                   alone=self.step < 2 * WARM_UP_STEPS)
        self.model.zero_grad()
        loss.backward()
        self.team.average([p.grad for p in self.model.parameters() if p.grad is not None])
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        self.step += 1
        return answer_nll

    def step_done(self, rank, text, to_save, to_score):
        if rank > 0:
            return
        if self.step % self.args.log_every == 0:
            print(f"step {self.step}, {self.seconds / 60:.1f} min, {text}", flush=True)
        if to_save.due():
            self.save()
        if to_score.due():
            self.log_scores(8)

    def log_scores(self, n_prompts):
        for kind, n_tokens, n_facts in SUITE:
            share = score(self.model, self.samples, kind, n_tokens, n_facts, n_prompts, self.device)
            print(f"  {kind} {n_tokens} tokens, {n_facts} facts: {share:.2f}", flush=True)


class Clock:
    """True about once in this many seconds."""

    def __init__(self, seconds):
        self.seconds, self.last = seconds, time.time()

    def due(self):
        if time.time() - self.last < self.seconds:
            return False
        self.last = time.time()
        return True


def train(args):
    """Trains with --processes processes; this one is the first and directs the others."""
    os.makedirs(args.out, exist_ok=True)
    if os.path.exists(meeting_place(args)):
        os.remove(meeting_place(args))
    others = [multiprocessing.get_context("fork").Process(target=work, args=(args, rank), daemon=True)
              for rank in range(1, args.processes)]
    for process in others:
        process.start()
    work(args, 0)
    for process in others:
        process.join()


def work(args, rank):
    stop, mean = [], None
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.append(True))
    run = Run(args, Team(args, rank))
    total, to_save, to_score = args.minutes * 60, Clock(args.save_minutes * 60), Clock(args.score_minutes * 60)
    while True:
        share, ends = run.team.agree(run.seconds / total,
                                     bool(stop) or 0 < args.steps <= run.step or run.seconds >= total)
        if ends:
            break
        begin = time.time()
        lengths, drill = next(stage[1:] for stage in STAGES if share < stage[0])
        length = run.lengths.choice(lengths)
        run.set_rate(share)
        nll = run.train_step(length, drill)
        mean = nll if mean is None else 0.98 * mean + 0.02 * nll
        run.seconds += min(time.time() - begin, LONGEST_STEP)
        run.step_done(rank, f"{length} tokens, answer nll {mean:.3f}", to_save, to_score)
    if args.processes > 1:
        dist.destroy_process_group()
    if rank == 0:
        run.save()
        if run.seconds >= total:
            run.log_scores(16)


def score_file(args):
    device = device_of(args)
    metadata, tensors = read_gguf(args.model)
    model = Llama(metadata, tensors).to(device)
    samples = load_samples(args, metadata, seed=0)
    for length in args.lengths:
        for kind, _, n_facts in SUITE:
            share = score(model, samples, kind, length, n_facts, args.prompts, device, args.dtype)
            print(f"{kind} {length} tokens, {n_facts} facts: {share:.2f}", flush=True)


def average(args):
    """Averages checkpoints: the mean is steadier than any of them (arXiv 1803.05407)."""
    metadata, first = read_gguf(args.models[0])
    sums = {name: t.astype(np.float32) for name, t in first.items()}
    for path in args.models[1:]:
        _, tensors = read_gguf(path)
        if {n: t.shape for n, t in tensors.items()} != {n: t.shape for n, t in first.items()}:
            raise ValueError(f"{path}: other tensors than {args.models[0]}")
        for name, t in tensors.items():
            sums[name] += t.astype(np.float32)
    n = len(args.models)
    write_gguf(args.out, metadata, {name: (s / n).astype(first[name].dtype) for name, s in sums.items()})


def kind_share(text):
    kind, _, share = text.partition("=")
    if kind not in MIX:
        raise argparse.ArgumentTypeError(f"{kind}: the kinds are {', '.join(MIX)}")
    return kind, float(share)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--threads", type=int, default=os.cpu_count(), help="CPU threads")
    common.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda if there is one")
    common.add_argument("--paragraphs", type=int, default=12000, help="of generated filler to draw from")
    one = commands.add_parser("train", parents=[common], help="train, or go on where --out stopped")
    one.add_argument("--start", required=True, help="GGUF whose weights and tokenizer are the beginning")
    one.add_argument("--out", required=True, help="folder of last.pt (resumed if there) and last.gguf")
    one.add_argument("--minutes", type=float, default=120,
                     help="time of the whole run, resumed parts included")
    one.add_argument("--text", help="a public-domain text; half of the filler is then taken from it")
    one.add_argument("--insert-layers", type=int, nargs="*", default=[], metavar="PLACE",
                     help="add layers before these ones, which change nothing at first")
    one.add_argument("--mix", nargs="*", default=[], metavar="KIND=SHARE", type=kind_share,
                     help="shares of the kinds of riddles, default: "
                     + " ".join(f"{k}={v}" for k, v in MIX.items()))
    one.add_argument("--n-ctx", type=int, default=8192, help="context length to write into last.gguf")
    one.add_argument("--steps", type=int, default=0, help="stop after this step at the latest; 0: no limit")
    one.add_argument("--optimizer", choices=["muon", "adamw"], default="muon",
                     help="of the layers' matrices; the rest has AdamW")
    one.add_argument("--processes", type=int, default=1,
                     help="of a CPU run, each with --threads; two of one thread are faster than one of two")
    one.add_argument("--rate", type=float, default=1e-3, help="highest learning rate")
    one.add_argument("--look-ahead", type=float, default=0.3, metavar="WEIGHT",
                     help="of the loss on the answers' second-next tokens, default: 0.3")
    one.add_argument("--tokens-per-step", type=int, default=4096)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--log-every", type=int, default=20, help="steps")
    one.add_argument("--save-minutes", type=float, default=3)
    one.add_argument("--score-minutes", type=float, default=10)
    two = commands.add_parser("score", parents=[common], help="share of right answers of a GGUF file")
    two.add_argument("model")
    two.add_argument("--lengths", type=int, nargs="+", default=[1000])
    two.add_argument("--prompts", type=int, default=16)
    two.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    three = commands.add_parser("average", help="the mean of the weights of GGUF files of one run")
    three.add_argument("out")
    three.add_argument("models", nargs="+")
    return parser.parse_args(arguments)


def main(arguments):
    args = parse(arguments)
    try:
        {"train": train, "score": score_file, "average": average}[args.command](args)
    except (OSError, ValueError) as error:
        print(f"train.py: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
