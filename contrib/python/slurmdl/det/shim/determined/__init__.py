# SPDX-License-Identifier: Apache-2.0
"""In PYTHONPATH below `python -m slurmdl.det`: `import determined` is slurmdl.det."""

import slurmdl.det

slurmdl.det.stand_in()
