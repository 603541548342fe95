# SPDX-License-Identifier: Apache-2.0
"""Hugging Face transformers: a callback for its Trainer.

    trainer = Trainer(model, TrainingArguments(output_dir=run.trial_dir + "/hf", report_to="none"),
                      callbacks=[slurmdl.transformers.Callback(run)], ...)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(trainer.args.output_dir))

The Trainer's own checkpoints stay what it resumes from; with save_model=True each of them is also saved as one of the
run: model, optimizer, scheduler and random states.
"""

from typing import Any, Dict, Optional

from transformers import TrainerCallback  # type: ignore[import-not-found, unused-ignore]

from .runs import Run, init


def _grouped(name: str) -> str:
    """"eval_loss" becomes "validation/loss", "loss" becomes "training/loss"."""
    for prefix, group in (("eval_", "validation/"), ("test_", "test/"), ("train_", "training/")):
        if name.startswith(prefix):
            return group + name[len(prefix) :]
    return "training/" + name


class Callback(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Logs what the Trainer logs; saves, and ends the training, when a stop is requested."""

    def __init__(self, run: Optional[Run] = None, save_model: bool = False) -> None:
        self._run = run if run is not None else init()
        self._save_model = save_model

    def on_train_begin(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        names = (
            "learning_rate",
            "per_device_train_batch_size",
            "num_train_epochs",
            "max_steps",
            "seed",
            "weight_decay",
        )
        self._run.event("hyperparameters", **{n: getattr(args, n, None) for n in names})

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **kw: Any) -> None:
        values = {_grouped(k): v for k, v in (logs or {}).items() if isinstance(v, (int, float)) and k != "epoch"}
        if state.epoch is not None:
            self._run.epoch(state.epoch)
        self._run.log(values, state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kw: Any) -> Any:
        if self._run.should_stop():
            control.should_save = True
            control.should_training_stop = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        if self._save_model:
            from . import torch

            torch.save_model(
                self._run,
                state.global_step,
                model=kw.get("model"),
                optimizer=kw.get("optimizer"),
                scheduler=kw.get("lr_scheduler"),
                extra={"epoch": state.epoch},
            )
        else:
            self._run.flush()
