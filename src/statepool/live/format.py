"""How journals are written and how their events are read: both have a number, which a journal and a snapshot carry.

FORMAT counts how events are written, RULE how they are learnt from and drawn by. A journal of an earlier number goes
on: the first batch of this release writes an `Upgraded` event, and from there on its own numbers hold. Events before it
are learnt from by today's rule, but their draws are not repeated by it.

    format 1, rule 1    the first release
    format 2, rule 2    tickets carry the epoch of the process that minted them, luck does not depend on them; a state
                        that is impossible for the action of its ticket teaches nothing
    format 3, rule 3    one rule for pools and simulations: versions record what travels as one table, and what a
                        learner starts anew from (for SelfTuned, optimistic state means in place of one action)
    format 4, rule 3    decisions may come out of lanes, and say which round they are to the learner
    format 5, rule 3    what comes with every decision is packed (`packed`); what is told of a decision later names it
                        by its number alone; tickets are minted in fewer characters
"""

FORMAT = 5
RULE = 3


def check_format(format_: int, rule: int) -> None:
    """Refuse a journal of a later release."""
    if format_ > FORMAT or rule > RULE:
        raise ValueError(
            f"this journal has format {format_} and rule {rule}, made by a later statepool; known: {FORMAT} and {RULE}"
        )
