#!/bin/sh
# Stands for a training script that knows nothing of dl: train.sh LR EPOCHS
awk -v lr="$1" -v epochs="$2" 'BEGIN {
    for (i = 1; i <= epochs; i++)
        printf "epoch %d: loss = %.4f\n", i, (log (lr) - log (0.03)) ^ 2 + 1 / i
}'
