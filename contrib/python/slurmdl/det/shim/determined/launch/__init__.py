# SPDX-License-Identifier: Apache-2.0
"""Determined's launchers, as far as a trial of `dl run` needs them."""
