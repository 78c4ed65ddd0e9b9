"""An independent reader of stores: the judge of what the product writes.

Written from the format document alone, with the standard library only, and sharing no code with the product, so
that a mistake in one is not repeated in the other.
"""


class Refused(Exception):
    """The store breaks a rule of the format; the text names the rule and the thing that breaks it."""


def require(condition, reason):
    """Refuses the store with `reason` unless `condition` holds."""
    if not condition:
        raise Refused(reason)
