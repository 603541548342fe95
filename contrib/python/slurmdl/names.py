# SPDX-License-Identifier: Apache-2.0
"""Names of datasets for what is nested."""

import hashlib
import re
from typing import Any, Dict, Tuple

_MAX = 127


def dataset_name(path: Tuple[str, ...], taken: Dict[str, Any]) -> str:
    """A name that a checkpoint takes and that is not taken: the parts of the path, with slashes."""
    name = "/".join(p for p in re.split("/+", "/".join(path)) if p) or "value"
    name = re.sub(r"(^|/)\.+", r"\1_", name)
    if len(name.encode()) > _MAX - 4:
        name = name[:80].encode()[:90].decode(errors="ignore") + "~" + hashlib.sha256(name.encode()).hexdigest()[:24]
    base, n = name, 1
    while name in taken:
        n += 1
        name = f"{base}~{n}"
    return name
