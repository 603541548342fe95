# SPDX-License-Identifier: Apache-2.0
"""The adapters for Lightning, transformers, Keras and scikit-learn, with those frameworks that are installed."""

import contextlib
import importlib
import io
import logging
import os
import sys
import warnings

import numpy as np
from check import ok, raises, same, skip

import slurmdl

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", CUDA_VISIBLE_DEVICES="")


def has(*names):
    for name in names:
        try:
            importlib.import_module(name)
            return True
        except ImportError:
            pass
    skip(names[0], "not installed")
    return False


def quiet():
    return contextlib.redirect_stderr(io.StringIO())


def values(folder, name):
    rows = slurmdl.read_metrics(folder)
    return rows[rows["name"] == name]["value"].tolist()


def lightning_fit(folder, epochs, stop=False):
    """Train a small module and return its weights and the number of epochs."""
    import torch

    import slurmdl.lightning as ours

    pl = ours.pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))

        def training_step(self, batch, i):
            loss = self.net(batch[0]).pow(2).mean()
            self.log("training/loss", loss, on_epoch=True, on_step=False)
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.1)

    torch.manual_seed(1)
    with slurmdl.Run(folder) as run:
        if stop:
            run.request_stop()
        data = torch.utils.data.TensorDataset(torch.arange(40.0).reshape(10, 4) / 40)
        module = Module()
        trainer = pl.Trainer(
            max_epochs=epochs,
            logger=ours.Logger(run),
            callbacks=[ours.Callback(run)],
            plugins=[ours.CheckpointIO()],
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            accelerator="cpu",
            log_every_n_steps=1,
            default_root_dir=".",
        )
        trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=5), ckpt_path=ours.last(run))
        return [p.detach().clone() for p in module.parameters()], trainer.current_epoch


def lightning():
    import torch

    whole, epochs = lightning_fit("lightning-whole", 4)
    lightning_fit("lightning", 2)
    same(slurmdl.newest("lightning"), ("lightning/a.1/ckpt/00000002.h5", 2), "lightning: the run has a checkpoint")
    pieces, again = lightning_fit("lightning", 4)
    ok(all(torch.equal(a, b) for a, b in zip(whole, pieces)), "lightning: a resumed run ends with the same weights")
    same((epochs, again), (4, 4), "lightning: a resumed run ends at the same epoch")
    same(len(values("lightning-whole", "training/loss")), 4, "lightning: the logger logs each epoch")
    same(
        values("lightning", "training/loss"),
        values("lightning-whole", "training/loss"),
        "lightning: a resumed run logs the same values",
    )
    same(len(os.listdir("lightning-whole/a.1/ckpt")), 2, "lightning: the two newest checkpoints are kept")
    _, ended = lightning_fit("lightning-stop", 50, stop=True)
    same((ended, slurmdl.newest("lightning-stop")[1]), (1, 1), "lightning: a stop request saves a checkpoint and ends training")
    kinds = [r["name"] for r in slurmdl.read_records("lightning/a.1") if r["kind"] == "event"]
    ok("finished" in kinds, "lightning: events are recorded")


def transformers():
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    import slurmdl.transformers as ours

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    rows = [{"input_ids": torch.arange(8) + i % 3, "labels": torch.tensor(i % 2)} for i in range(16)]

    def train(folder, stop=False):
        torch.manual_seed(2)
        model = BertForSequenceClassification(config)
        with slurmdl.Run(folder) as run:
            if stop:
                run.request_stop()
            arguments = TrainingArguments(
                output_dir=run.trial_dir + "/hf",
                num_train_epochs=2,
                per_device_train_batch_size=4,
                logging_steps=2,
                report_to="none",
                disable_tqdm=True,
                save_steps=4,
                eval_strategy="epoch",
            )
            trainer = Trainer(
                model, arguments, train_dataset=rows, eval_dataset=rows, callbacks=[ours.Callback(run, save_model=True)]
            )
            with contextlib.redirect_stdout(io.StringIO()):
                trainer.train()
            return model, trainer.state.global_step

    model, steps = train("hf")
    same((steps, len(values("hf", "training/loss"))), (8, 5), "transformers: the Trainer logs to the run")
    same(len(values("hf", "validation/loss")), 2, "transformers: evaluation is logged")
    saved = slurmdl.load("hf")
    name = "classifier.weight"
    ok((saved["model/" + name] == model.state_dict()[name].numpy()).all(), "transformers: a checkpoint has the model")
    ok(any(n.startswith("optimizer/") for n in saved), "transformers: a checkpoint has the optimizer")
    _, steps = train("hf-stop", stop=True)
    ok(steps == 1 and slurmdl.newest("hf-stop")[1] == 1, "transformers: a stop request saves a checkpoint and ends training")


def keras():
    import keras

    import slurmdl.keras as ours

    x = np.linspace(0, 1, 64, dtype="f4").reshape(16, 4)
    y = x.sum(1)

    def fit(folder, epochs):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, "tanh"), keras.layers.Dense(1)])
        model.compile(optimizer="adam", loss="mse")
        with slurmdl.Run(folder) as run:
            callback = ours.Callback(run)
            model.fit(
                x,
                y,
                epochs=epochs,
                initial_epoch=callback.restore(model),
                callbacks=[callback],
                verbose=0,
                shuffle=False,
                validation_data=(x, y),
                batch_size=4,
            )
        return model.get_weights()

    whole = fit("keras-whole", 4)
    fit("keras", 2)
    pieces = fit("keras", 4)
    ok(all((a == b).all() for a, b in zip(whole, pieces)), "keras: a resumed run ends with the same weights")
    same((len(values("keras", "training/loss")), len(values("keras", "validation/loss"))), (4, 4), "keras: training and validation are logged")
    same(slurmdl.newest("keras")[1], 4, "keras: the step of a checkpoint is the epoch")
    other = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    other.compile(optimizer="sgd", loss="mse")
    with slurmdl.Run("keras") as run:
        callback = ours.Callback(run)
        with raises(slurmdl.Error, "another model", "keras: restore() rejects another model"):
            callback.restore(other)
        other.fit(x, y, epochs=9, initial_epoch=8, callbacks=[callback], verbose=0)
    saved = len(slurmdl.load("keras/a.3/ckpt/00000009.h5"))
    same(saved, len(other.variables) + len(other.optimizer.variables), "keras: a rejected checkpoint leaves no tensors in the next one")
    with slurmdl.Run("keras-stop") as run:
        run.request_stop()
        model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(x, y, epochs=50, callbacks=[ours.Callback(run)], verbose=0)
        same(len(history.epoch), 1, "keras: a stop request ends training")


def sklearn():
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import SGDClassifier

    import slurmdl.sklearn as ours

    x, y = load_digits(return_X_y=True)
    options = dict(validation=(x[1000:], y[1000:]), scoring=["accuracy", "f1_macro"])

    def fit(folder, epochs):
        with slurmdl.Run(folder) as run:
            return ours.fit(run, SGDClassifier(random_state=1), x[:1000], y[:1000], epochs=epochs, **options)

    whole = fit("sklearn-whole", 4)
    fit("sklearn", 2)
    pieces = fit("sklearn", 4)
    ok((whole.coef_ == pieces.coef_).all(), "sklearn: a resumed run ends with the same weights")
    got = values("sklearn", "validation/accuracy")
    ok(len(got) == 4 and got[-1] > 0.8 and len(values("sklearn", "training/f1_macro")) == 4, "sklearn: fit() logs scores")
    with slurmdl.Run("sklearn-cv") as run:
        ours.cross_validate(run, RandomForestClassifier(10), x, y, cv=3, scoring=["accuracy"])
        ours.log_scores(run, pieces, x, y, 7)
    same(len(values("sklearn-cv", "fold/accuracy")), 3, "sklearn: cross_validate() logs each fold")
    ok(
        abs(values("sklearn-cv", "validation/accuracy")[0] - np.mean(values("sklearn-cv", "fold/accuracy"))) < 1e-12,
        "sklearn: cross_validate() logs the mean",
    )
    same(len(values("sklearn-cv", "validation/score")), 1, "sklearn: log_scores()")
    with slurmdl.Run("sklearn-other") as run:
        same(ours.restore(run), None, "sklearn: restore() returns None without a checkpoint")
        run.save(3)
        with raises(slurmdl.Error, "of step 3, was not saved by", "sklearn: restore() rejects a checkpoint that it did not save"):
            ours.restore(run)


only = sys.argv[1:]
for test, names in (
    (lightning, ("lightning", "pytorch_lightning")),
    (transformers, ("transformers",)),
    (keras, ("keras",)),
    (sklearn, ("sklearn",)),
):
    if (not only or test.__name__ in only) and has(*names):
        with quiet():
            try:
                test()
            except Exception as error:
                import traceback

                traceback.print_exc(file=sys.stdout)
                ok(False, f"{test.__name__}: {repr(error)[:200]}".replace("\n", " "))
