# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's tutorial "Multi-worker training with Keras", with synthetic data. It does not use Slurm's variables.

Every worker runs this script; MultiWorkerMirroredStrategy reads TF_CONFIG.
"""

import json
import os

import numpy as np
import tensorflow as tf

per_worker_batch_size = 64
tf_config = json.loads(os.environ["TF_CONFIG"])
num_workers = len(tf_config["cluster"]["worker"]) + len(tf_config["cluster"].get("chief", []))

strategy = tf.distribute.MultiWorkerMirroredStrategy()
global_batch_size = per_worker_batch_size * num_workers

x = np.random.default_rng(1).standard_normal((1024, 8)).astype("float32")
y = (x.sum(1, keepdims=True) > 0).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1024, seed=1).repeat().batch(global_batch_size)

with strategy.scope():
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile(
        loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.5),
        metrics=["accuracy"],
    )
history = model.fit(dataset, epochs=3, steps_per_epoch=20, verbose=0)

loss = history.history["loss"]
weights = sum(float(tf.reduce_sum(tf.abs(v))) for v in model.trainable_variables)
task = tf_config["task"]
print(f"{task['type']} {task['index']}: {strategy.num_replicas_in_sync} replicas, loss falls {loss[-1] < loss[0]}, weights {weights:.5f}", flush=True)
