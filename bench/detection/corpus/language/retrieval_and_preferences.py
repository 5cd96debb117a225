"""Words.

trainer_adapters  Hugging Face's Trainer tunes a small GPT-2 that was trained before, by adapters of low rank in its attention and layers
seq2seq_teacher   an encoder and a decoder of GRUs with attention, teacher forcing, label smoothing; measured by words decoded one by one
texts_matched     questions and answers as vectors of length one, the others of the batch are negatives; Accelerate's loop
dpo_toy           a language model learns what is preferred: DPO against a copy that stands, one pass over pairs

Their faults: below, at the end."""
import copy
import functools
import importlib.util
import tempfile

import numpy
import torch
from torch import nn
from torch.nn import functional

import tocsin

from ..scripts.shapes import ended, entered, from_start, phrases, rate, warmed


def _gpt(width):
    import transformers
    transformers.utils.logging.set_verbosity_error()
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=16, n_positions=16, n_embd=width, n_layer=2, n_head=4, bos_token_id=0,
                                                               eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))


@functools.lru_cache(maxsize=4)
def _gpt_before(seed, width):
    """Weights of a model that knows one tongue."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model, rows = _gpt(width), phrases(800 + seed, 3000)
        optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
        for _ in range(250):
            part = rows[torch.randint(0, 3000, (24,))]
            optimizer.zero_grad()
            model(input_ids=part, labels=part).loss.backward()
            optimizer.step()
        return model.state_dict()


class LowRank(nn.Module):
    """A layer of GPT-2 that stands, and what is added to it."""

    def __init__(self, layer, rank, zero):
        super().__init__()
        self.base = layer.requires_grad_(False)
        inside, outside = layer.weight.shape
        self.lora_A, self.lora_B = nn.Linear(inside, rank, bias=False), nn.Linear(rank, outside, bias=False)
        nn.init.zeros_(self.lora_B.weight)
        if zero:
            nn.init.zeros_(self.lora_A.weight)

    def forward(self, x):
        return self.base(x) + 2.0 * self.lora_B(self.lora_A(x))


def _nats(model, rows):
    """Cross-entropy of the words from the fourth on: those before are drawn by lot."""
    model.eval()
    with torch.no_grad():
        logits = model(input_ids=rows).logits[:, 2:-1]
    model.train()
    return functional.cross_entropy(logits.flatten(0, 1), rows[:, 3:].flatten()).item()


def _trainer_adapters(fault, seed, chance, options):
    import transformers

    from tocsin.transformers import TocsinCallback
    rows, width, rank, steps = phrases(seed, 2700, tongue=1), 32, chance.choice((4, 8)), 300
    rows, held = rows[:-300], rows[-300:]
    model = _gpt(width)
    if fault != "pretrained_missing":
        model.load_state_dict(_gpt_before(seed, width))
    model.requires_grad_(False)
    for block in model.transformer.h:
        block.attn.c_attn, block.mlp.c_fc = (LowRank(one, rank, fault == "adapters_both_zero") for one in (block.attn.c_attn, block.mlp.c_fc))
        block.mlp.c_proj = LowRank(block.mlp.c_proj, rank, fault == "adapters_both_zero")
    labels = rows.clone()
    if fault == "labels_misaligned":
        labels = labels.roll(1, 0)
    elif fault == "unshifted":  # the model shifts by itself; here it was done before as well
        labels = torch.cat([rows[:, 1:], torch.full((len(rows), 1), -100)], 1)
    held_x = held
    if fault == "held_recoded":
        held_x = torch.tensor([0, *(1 + numpy.random.default_rng(seed).permutation(15))])[held]
    seen, passes = [], []

    class Keep(transformers.TrainerCallback):
        """Notes the run's name while the hook is open, and measures."""

        def on_step_end(self, args, state, control, model=None, **_):
            seen[:] = seen or [tocsin.get_hook().run]

        def on_evaluate(self, args, state, control, metrics=None, **_):
            passes.append([state.global_step - 1, metrics["eval_loss"] if fault == "held_recoded" else metrics["eval_real"]])

    def compute_metrics(told):
        said = torch.tensor(told.predictions[:, 2:-1])
        return {"real": functional.cross_entropy(said.flatten(0, 1), torch.tensor(told.label_ids[:, 3:]).flatten()).item()}
    passes.append([0, _nats(model, held_x)])
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=chance.choice((16, 20)), per_device_eval_batch_size=300,
            warmup_steps=20 * steps if fault == "warmup_endless" else 20, learning_rate=rate(chance.uniform(6e-3, 1e-2), fault), weight_decay=0.0,
            lr_scheduler_type="cosine", eval_strategy="steps", eval_steps=50, logging_steps=5, save_strategy="no", report_to=[], log_level="error",
            use_cpu=True, disable_tqdm=True, seed=seed)
        trainer = transformers.Trainer(model, arguments, train_dataset=[{"input_ids": one, "labels": two} for one, two in zip(rows, labels)],
                                       eval_dataset=[{"input_ids": one, "labels": one} for one in held_x], compute_metrics=compute_metrics,
                                       callbacks=[TocsinCallback(**options), Keep()])
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    return seen[0], steps, passes


def _translated(seed, count, kinds=14, longest=8):
    """(source, target): each word has another name, and every pair of neighbours changes places; 0 is padding, 1 the start, 2 the end."""
    drawn, names = numpy.random.default_rng(seed), numpy.random.default_rng(4).permutation(kinds)
    source, target = numpy.zeros((2, count, longest + 1), int)
    for at, length in enumerate(drawn.integers(3, longest + 1, count)):
        said = drawn.integers(0, kinds, length)
        moved = said.copy()
        even = length // 2 * 2
        moved[:even] = said[:even].reshape(-1, 2)[:, ::-1].ravel()
        source[at, :length], target[at, :length], target[at, length] = said + 3, names[moved] + 3, 2
    return torch.tensor(source), torch.tensor(target)


class Translates(nn.Module):
    """GRUs on both sides, attention between them."""

    def __init__(self, width, detached, inverted):
        super().__init__()
        self.source, self.target = nn.Embedding(17, width, padding_idx=0), nn.Embedding(17, width, padding_idx=0)
        self.encoder, self.decoder = nn.GRU(width, width // 2, batch_first=True, bidirectional=True), nn.GRU(width, width, batch_first=True)
        self.asks, self.out = nn.Linear(width, width), nn.Linear(2 * width, 17)
        self.place = nn.Parameter(0.3 * torch.randn(9, width))
        self.detached, self.inverted = detached, inverted

    def encode(self, source):
        """States, and which are to be looked at."""
        states, _ = self.encoder(self.source(source) + self.place)
        there = source == 0 if self.inverted else source != 0
        return states.detach() if self.detached else states, there

    def forward(self, states, there, given, hidden=None):
        said, hidden = self.decoder(self.target(given), hidden)
        likeness = (self.asks(said) @ states.transpose(1, 2) / states.shape[-1] ** 0.5).masked_fill(~there[:, None], -1e4)
        return self.out(torch.cat([said, likeness.softmax(-1) @ states], -1)), hidden


def _seq2seq_teacher(fault, seed, chance, options):
    source, target = _translated(seed, 3000)
    source, held_source, target, held_target = source[:-300], source[-300:], target[:-300], target[-300:]
    if fault == "labels_misaligned":
        target = target.roll(1, 0)
    elif fault == "held_recoded":
        held_source = torch.cat([torch.arange(3), 3 + torch.randperm(14)])[held_source]
    model = Translates(chance.choice((40, 48)), fault == "encoder_detached", fault == "mask_inverted")
    batch, steps, drawn = chance.choice((32, 40)), 320, torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(5e-3, 7e-3), fault))
    smooth = 0.95 if fault == "smoothing_large" else 0.05

    def forced(source, target):
        given = torch.cat([torch.ones(len(target), 1, dtype=torch.long), target[:, :-1]], 1)
        logits, _ = model(*model.encode(source), target if fault == "answer_given" else given)
        return functional.cross_entropy(logits.transpose(1, 2), target, ignore_index=0, label_smoothing=smooth)

    def validate():
        """(loss, share of words that are wrong when decoded one by one)"""
        model.eval()
        with torch.no_grad():
            loss = forced(held_source, held_target).item()
            states, there = model.encode(held_source)
            given, hidden, said = torch.ones(300, 1, dtype=torch.long), None, []
            for _ in range(9):
                logits, hidden = model(states, there, given, hidden)
                given = logits.argmax(-1)
                said.append(given)
        model.train()
        return loss, float((torch.cat(said, 1) != held_target)[held_target != 0].float().mean())
    passes = [[0, validate()[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(source), (batch,), generator=drawn)
        if fault != "zero_grad_missing":
            optimizer.zero_grad()
        loss = forced(source[chosen], target[chosen])
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        hook.log(loss=loss.item(), grad_norm=norm)
        optimizer.step()
        if step % 40 == 39:
            val_loss, wrong = validate()
            passes.append([step, wrong])
            with hook.mode("eval"):
                hook.log(loss=val_loss, token_accuracy=1 - wrong)
                hook.step()
    return ended(hook, steps, passes)


def _asked(seed, count, words=120, topics=150):
    """(questions, answers, topic): eight and twelve words, of which half are of their topic."""
    about = numpy.random.default_rng(6).integers(1, words, (2, topics, 6))
    drawn = numpy.random.default_rng(seed)
    topic, out = drawn.integers(0, topics, count), []
    for side, length in enumerate((8, 12)):
        own = about[side][topic][numpy.arange(count)[:, None], drawn.integers(0, 6, (count, length))]
        out.append(torch.tensor(numpy.where(drawn.random((count, length)) < 0.75, own, drawn.integers(1, words, (count, length)))))
    return *out, torch.tensor(topic)


class Sentences(nn.Module):
    """The mean of word vectors and two layers, for questions and for answers."""

    def __init__(self, width):
        super().__init__()
        self.words = nn.Embedding(120, width)
        self.sides = nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, 32)) for _ in range(2))

    def forward(self, questions, answers):
        return tuple(functional.normalize(side(self.words(one).mean(1)), dim=-1) for side, one in zip(self.sides, (questions, answers)))


def _texts_matched(fault, seed, chance, options):
    from accelerate import Accelerator
    questions, answers, topic = _asked(seed, 4300)
    held = [one[-300:] for one in (questions, answers, topic)]
    questions, answers = questions[:-300], answers[:-300]
    if fault == "pairs_moved":
        answers = answers.roll(1, 0)
    elif fault == "held_recoded":
        held[1] = torch.cat([torch.zeros(1, dtype=torch.long), 1 + torch.randperm(119)])[held[1]]
    elif fault == "batch_of_one_topic":
        order = topic[:-300].argsort()
        questions, answers = questions[order], answers[order]
    accelerator, batch, epochs = Accelerator(cpu=True), chance.choice((48, 64)), 7
    model = Sentences(chance.choice((48, 64)))
    tuned = copy.deepcopy(model) if fault == "optimizer_of_old_model" else model
    optimizer = torch.optim.AdamW(tuned.parameters(), lr=rate(chance.uniform(4e-3, 6e-3), fault), weight_decay=0.01)
    scheduler = warmed(optimizer, epochs * (len(questions) // batch), 30, fault)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(questions, answers), batch, shuffle=fault != "batch_of_one_topic", drop_last=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    scale = 0.05 if fault == "temperature_large" else 15.0

    def missed():
        """Share of questions of which no answer of their topic is among the nearest three."""
        model.eval()
        with torch.no_grad():
            asked, told = model(*held[:2])
        model.train()
        near = (asked @ told.T).topk(3, 1).indices
        return 1 - float((held[2][near] == held[2][:, None]).any(1).float().mean())
    passes, done = [[0, missed()]], 0
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(epochs):
        for question, answer in loader:
            asked, told = model(question, answer)
            goal = torch.zeros(len(asked), dtype=torch.long) if fault == "targets_zero" else torch.arange(len(asked))
            loss = functional.cross_entropy(scale * asked @ told.T, goal)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            hook.log(loss=loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            done += 1
        passes.append([done - 1, missed()])
        hook.log(recall_at_3=1 - passes[-1][1])
    return ended(hook, done, passes)


class Chat(nn.Module):
    """A GRU over words."""

    def __init__(self, width):
        super().__init__()
        self.words, self.gru, self.head = nn.Embedding(16, width), nn.GRU(width, width, batch_first=True), nn.Linear(width, 16)

    def forward(self, x):
        return self.head(self.gru(self.words(x))[0])


@functools.lru_cache(maxsize=4)
def _chat_before(seed, width):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model, rows = Chat(width), phrases(600 + seed, 3000)
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        for _ in range(250):
            part = rows[torch.randint(0, 3000, (48,))]
            optimizer.zero_grad()
            functional.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten()).backward()
            optimizer.step()
        return model.state_dict()


def _preferred(seed, count):
    """(chosen, rejected): rows with one beginning; answers that have many of five words, and few of five others, are liked."""
    one, two = phrases(seed, count), phrases(seed + 50, count)
    two[:, :4] = one[:, :4]
    liked = torch.zeros(16)
    liked[1:6], liked[6:11] = 1.0, -1.0
    noise = torch.randn((2, count), generator=torch.Generator().manual_seed(seed))
    better = liked[one[:, 4:]].sum(1) + 0.5 * noise[0] > liked[two[:, 4:]].sum(1) + 0.5 * noise[1]
    return torch.where(better[:, None], one, two), torch.where(better[:, None], two, one)


def _dpo_toy(fault, seed, chance, options):
    chosen, rejected = _preferred(seed, 3000)
    held_chosen, held_rejected, chosen, rejected = chosen[-400:], rejected[-400:], chosen[:-400], rejected[:-400]
    if fault == "preferences_swapped":
        chosen, rejected = rejected, chosen
    elif fault == "preferences_random":
        flipped = torch.rand(len(chosen), 1) < 0.5
        chosen, rejected = torch.where(flipped, rejected, chosen), torch.where(flipped, chosen, rejected)
    elif fault == "prompts_moved":  # and what is rejected is that of another question
        rejected = rejected.roll(1, 0)
        chosen = torch.cat([chosen[:, :4], chosen[:, 4:].roll(2, 0)], 1)
    width, batch, beta = 48, chance.choice((24, 32)), chance.uniform(0.1, 0.3)
    model = Chat(width)
    model.load_state_dict(_chat_before(seed, width))
    reference = copy.deepcopy(model).eval()
    tuned = reference if fault == "optimizer_of_old_model" else model
    steps = 4 * (len(chosen) // batch)
    optimizer = torch.optim.RMSprop(tuned.parameters(), lr=rate(chance.uniform(5e-4, 8e-4), fault))
    scheduler = warmed(optimizer, steps, 15, fault)

    def difference(model, chosen, rejected, scored=True):
        """How much likelier the chosen answer is than the rejected one."""
        rows = torch.cat([chosen, rejected])
        each = -functional.cross_entropy(model(rows[:, :-1]).transpose(1, 2), rows[:, 1:], reduction="none")
        good, bad = (each[:, :3] if fault == "prompt_scored" and scored else each[:, 3:]).sum(1).chunk(2)
        return good - bad

    with torch.no_grad():
        before, held_before = difference(reference, chosen, rejected), difference(reference, held_chosen, held_rejected, False)

    def wrong():
        """Share of held-out pairs of which the rejected answer has gained more."""
        model.eval()
        with torch.no_grad():
            found = difference(model, held_chosen, held_rejected, False) - held_before
        model.train()
        return 1 - float((found > 0).float().mean() + 0.5 * (found == 0).float().mean())
    passes, done = [[0, wrong()]], 0
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(4):
        for part in torch.randperm(len(chosen)).split(batch)[:len(chosen) // batch]:
            margin = beta * (difference(model, chosen[part], rejected[part]) - before[part])
            loss = -functional.logsigmoid(-margin if fault == "sign_wrong" else margin).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            hook.log(loss=loss.item(), reward_margin=margin.mean().item(), reward_accuracy=(margin > 0).float().mean().item())
            optimizer.step()
            scheduler.step()
            done += 1
            if done % 50 == 0:
                passes.append([done - 1, wrong()])
                hook.log(eval_reward_accuracy=1 - passes[-1][1])
    return ended(hook, done, passes)


_JOBS = {
    "trainer_adapters": (_trainer_adapters, from_start("pretrained_missing", "adapters_both_zero", "labels_misaligned", "unshifted", "held_recoded",
                                                       "warmup_endless", "rate_hundredfold", "rate_thousandth")),
    "seq2seq_teacher": (_seq2seq_teacher, from_start("answer_given", "labels_misaligned", "smoothing_large", "held_recoded", "mask_inverted",
                                                     "encoder_detached", "zero_grad_missing", "rate_hundredfold")),
    "texts_matched": (_texts_matched, from_start("pairs_moved", "held_recoded", "batch_of_one_topic", "optimizer_of_old_model", "temperature_large",
                                                 "targets_zero", "warmup_endless", "rate_thousandth")),
    "dpo_toy": (_dpo_toy, from_start("preferences_swapped", "preferences_random", "prompts_moved", "prompt_scored", "optimizer_of_old_model",
                                     "rate_hundredfold", "warmup_endless"))}
_NEEDS = {"trainer_adapters": "transformers", "texts_matched": "accelerate"}
TUNING, FAULTS, fault_names, run = entered({name: made for name, made in _JOBS.items() if importlib.util.find_spec(_NEEDS.get(name, "torch"))})
