from __future__ import annotations

import sys

from pykafka_broker.cli import main

sys.exit(main())
