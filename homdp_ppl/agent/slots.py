"""Slots: rules that play every policy once per step (HOP-V) number their episodes by epochs.

Slot s belongs to epoch s // H and is uniform at step s % H + 1. The H slots of an epoch are handed
out in order, abandoned ones again. While an epoch waits for states, further episodes have no slot:
they play the current policy and are no data.
"""

from __future__ import annotations

from homdp_ppl.agent.ledger import Ledger, Session


def slot_sessions(ledger: Ledger) -> dict[int, Session]:
    """The session of each slot that has one: not abandoned, and long enough to have its step."""
    H = ledger.spaces.horizon
    return {
        session.slot: session
        for session in ledger.sessions
        if session.slot is not None
        and session.id is not None
        and session.abandoned is None
        and (session.ended is None or len(session.actions) > session.slot % H)
    }


def current_epoch(ledger: Ledger) -> int:
    """The number of the last epoch that has begun; -1 before the first."""
    given = [session.slot for session in ledger.sessions if session.slot is not None]
    return max(given) // ledger.spaces.horizon if given else -1


def next_slot(ledger: Ledger) -> tuple[int | None, bool]:
    """The slot of the next episode, None if it has no slot; and whether it begins an epoch."""
    epoch, H = current_epoch(ledger), ledger.spaces.horizon
    if epoch < 0:
        return 0, True
    taken = slot_sessions(ledger)
    for slot in range(epoch * H, (epoch + 1) * H):
        if slot not in taken:
            return slot, False
    if all(taken[slot].is_revealed for slot in range(epoch * H, (epoch + 1) * H)):
        return (epoch + 1) * H, True
    return None, False


def slot_data(ledger: Ledger, skip_gaps: bool) -> list[Session]:
    """The revealed sessions in the order of their slots, up to the first that is missing.

    With ``skip_gaps``, earlier epochs of which an episode was forgotten are left out.
    """
    taken, H, current = slot_sessions(ledger), ledger.spaces.horizon, current_epoch(ledger)
    data: list[Session] = []
    for epoch in range(current + 1):
        found = [taken.get(slot) for slot in range(epoch * H, (epoch + 1) * H)]
        if skip_gaps and epoch < current and None in found:
            continue
        for session in found:
            if session is None or not session.is_revealed:
                return data
            data.append(session)
    return data
