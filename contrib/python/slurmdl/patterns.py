# SPDX-License-Identifier: Apache-2.0
"""Metrics in a line of text, as training scripts print them.

What is taken, and nothing else:

* A step: the word epoch, step, iter, iteration or global_step (any case), then a number, as in "epoch 3", "Epoch:
  3/10", "step=100", "[Epoch 3]", "iteration 100:".  If there are several, an epoch is the epoch and the rest counts.
* Metrics, in a line that has a step, or after a line that had one: NAME=NUMBER and NAME: NUMBER, where NAME is one
  word (letters, digits, _ / . -) that begins with a letter, in quotes or not; and NAME NUMBER where the NAME's last
  part is one of KNOWN ("loss 0.123", "val_acc 0.9").  NUMBER is 1, -1.5, .5, 1e-3, nan or inf, and may be followed by
  % (the number is taken as it is printed), but not by a letter, digit, ":" or "/": times, sizes and fractions are no
  metrics.
* Lines of more than 1,000 characters are not looked at.
"""

import re
from typing import Dict, NamedTuple, Optional

KNOWN = (
    "loss|acc|accuracy|err|error|perplexity|ppl|bpc|bleu|rouge|auc|auroc|f1|precision|recall|iou|miou|map|dice|psnr"
    "|ssim|mae|mse|rmse|r2|score|reward|return|lr|learning_rate|grad_norm|nll|elbo|kl|wer|cer|top1|top5"
)
_NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf|NaN|Inf|NAN|INF)"
_END = r"(?![\w:/]|\.\w)"
_STEP = re.compile(r"(?<![\w./-])(global_step|iteration|iter|step|epoch)s?\s*[:=#\[(]*\s*(\d+)(?![\w.])", re.I)
_PAIR = re.compile(rf"""(?<![\w./-])([A-Za-z][\w./-]*)['"]?\s*[=:]\s*({_NUMBER})%?{_END}""")
_WORDS = re.compile(rf"(?<![\w./-])((?:[A-Za-z][\w.-]*[_/.-])?(?:{KNOWN}))\s+({_NUMBER})%?{_END}", re.I)
_STEPS = ("epoch", "step", "iter", "iteration", "global_step", "epochs", "steps", "iters", "iterations")
LINE_MAX = 1000


class Found(NamedTuple):
    step: Optional[int]
    epoch: Optional[int]
    metrics: Dict[str, float]


def parse(line: str) -> Optional[Found]:
    """Parse a line; None if it has nothing."""
    if len(line) > LINE_MAX:
        return None
    step = epoch = None
    for match in _STEP.finditer(line):
        if match.group(1).lower() == "epoch":
            epoch = int(match.group(2)) if epoch is None else epoch
        else:
            step = int(match.group(2)) if step is None else step
    metrics: Dict[str, float] = {}
    for pattern in (_PAIR, _WORDS):
        for match in pattern.finditer(line):
            name = match.group(1).rstrip("./-")
            if name.lower() not in _STEPS and len(name) < 64:
                metrics.setdefault(name, float(match.group(2)))
    if step is None and epoch is None and not metrics:
        return None
    return Found(step if step is not None else epoch, epoch, metrics)
