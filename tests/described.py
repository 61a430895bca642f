"""What a system says of itself, asked in the test's own process."""

from __future__ import annotations

from mnemoscope._store.spec import Spec
from mnemoscope.systems.loader import Driver, Plan, describe, plan


def described(spec: Spec | str) -> Plan:
    """The plan of a system that was built once, to be asked, and closed."""
    made = plan(Spec.parse(spec) if isinstance(spec, str) else spec)
    complete, system = describe(made)
    Driver(made.build, system).close()
    return complete
