# SPDX-License-Identifier: Apache-2.0
"""A Hydra program for tests/python/notebook.t."""

import logging

import hydra


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    logging.getLogger("app").info("%s", cfg)
    if cfg.note == "bad":
        raise ValueError("so bad")
    return cfg.lr * cfg.width + cfg.opt.rate


if __name__ == "__main__":
    main()
