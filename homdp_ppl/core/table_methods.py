"""Methods of :class:`homdp_ppl.Episodes` for tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from homdp_ppl.core.checked import checked
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.spaces import HasSpaces, HasTables

if TYPE_CHECKING:
    from homdp_ppl.core.episodes import Episodes
    from homdp_ppl.core.log_summary import LogSummary


class TableMethods:
    """Reading episodes from tables, and writing them to tables."""

    __slots__ = ()

    @staticmethod
    @checked
    def from_frame(
        frame: Any,
        homdp: HasSpaces,
        episode: str = "episode",
        step: str | None = "step",
        observation: str | Sequence[str] | Mapping[str, str] = "observation",
        action: str = "action",
        state: str | Sequence[str] | None = "state",
        reward: str | None = "reward",
        label: str | None = "label",
        ended: str | None = "ended",
        behaviour: str | None = None,
    ) -> Episodes:
        """Read episodes from a table with one row per step.

        A row contains the observation and the action of a step, the state in which they occurred
        and, if they were recorded, the reward and the label. The state after the last action is in
        one more row, without an observation and an action; without this row, it is missing. Rows
        may be in any order. Other columns, and rows with no value but an id or a step, are ignored.

        Values are names or indices. None, NaN, masked entries and empty texts are missing; only
        states, rewards and labels may be missing.

        Parameters
        ----------
        frame
            A DataFrame of pandas or polars, a pyarrow Table, an xarray Dataset, or a dict of
            columns. Names of a pandas index count as columns.
        homdp
            A declaration, a world or spaces.
        episode
            The column of the ids of the episodes. Ids become texts.
        step
            The column that orders the steps: numbers without gaps, or dates and times. The first
            step is 0 if any row has step 0, else 1. None: the rows of each episode are in order.
        observation
            The column of observations. If there are several sensors: a dict {sensor: column}, a
            list of columns in the order of the sensors, or a column of joint names. If
            observations are vectors: a list of columns.
        action
            The column of actions.
        state
            The column of states, or a list of columns if states are vectors. None: no state was
            revealed.
        reward, label
            The columns of recorded rewards and labels. The default columns are read if they exist;
            None ignores them.
        ended
            The column of reasons: "horizon", "terminal" or "truncated". Without it, a shorter
            episode is truncated unless it ends in a terminal state.
        behaviour
            A description of the policy that acted, "saw states" if the actions may depend on
            latent states, or None.

        Raises
        ------
        DataError
            With all problems: the values, rows (counted from 0), and what to do. At most 20 are
            listed, with the number of further ones.

        Examples
        --------
        >>> from homdp_ppl import Episodes, Spaces
        >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
        >>> table = {
        ...     "patient": ["p7", "p7", "p7", "p9"],
        ...     "visit": [1, 2, 3, 1],
        ...     "observation": ["dark", "light", None, "dark"],
        ...     "action": ["press", "wait", None, "wait"],
        ...     "state": ["off", None, "on", "off"],
        ...     "comment": ["", "late", "", ""],
        ... }
        >>> log = Episodes.from_frame(table, lamp, episode="patient", step="visit")
        >>> log
        Episodes: 2 episodes of 2 steps, 1 ended early, 2 of 5 states missing
        >>> log[1].id, log[1].states.tolist(), log[1].ended
        ('p9', [0, None], 'truncated')
        """
        from homdp_ppl.core.table_problems import Report
        from homdp_ppl.core.table_reading import Columns, read_table
        from homdp_ppl.core.tables import as_table

        spaces = spaces_of(homdp, "from_frame")
        columns = Columns(episode, step, observation, action, state, reward, label, ended)
        wanted = {name for _, name in columns.listed(spaces)}
        table = as_table(frame, wanted, "from_frame")
        return read_table(table, spaces, columns, Report("from_frame"), behaviour=behaviour)

    @checked
    def to_frame(self, homdp: HasSpaces | None = None) -> Any:
        """A table with one row per step, and one for the state after the last action.

        The columns are those of :meth:`from_frame`, which reads the table back. Vectors have one
        column per axis, such as "state 1". Episodes without an id are numbered from 0.
        ``behaviour`` is not part of the table.

        Parameters
        ----------
        homdp
            A declaration, a world or spaces, for names instead of indices.

        Returns
        -------
        pandas.DataFrame or dict
            A dict of columns if pandas is not installed.

        Examples
        --------
        >>> from homdp_ppl import Episodes, Spaces
        >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
        >>> log = Episodes([[0, 1]], [[1, 0]], [[0, None, 1]])
        >>> print(log.to_frame(lamp).to_string())
           episode  step observation action state
        0        0     1        dark  press   off
        1        0     2       light   wait   NaN
        2        0     3         NaN    NaN    on
        """
        from homdp_ppl.core.episodes import Episodes
        from homdp_ppl.core.table_writing import to_table

        coded, spaces = cast(Episodes, self), None
        if homdp is not None:
            spaces = spaces_of(homdp, "to_frame")
            coded = Episodes.of(coded, spaces)
        return to_table(coded, spaces)

    @checked
    def summary(self, homdp: HasSpaces | None = None) -> LogSummary:
        """Lengths, missing states by step and by what was seen, actions, and visits of table rows.

        Parameters
        ----------
        homdp
            A declaration, a world or spaces, for names and rows. With a declaration, the summary
            lists the unknown rows about which the log says nothing.

        Examples
        --------
        >>> from homdp_ppl import Episodes, models
        >>> tiger = models.load("tiger", horizon=2).homdp
        >>> log = Episodes([[0, 1], [0, 0]], [[0, 1], [0, 0]], [[0, 0, 1], [0, None, 0]])
        >>> log.summary(tiger)
        2 episodes, 4 steps, horizon 2
        steps per episode  2: 2
        ended              horizon: 2
        states revealed    5 of 6 (83%)
          by step          100%, 50%, 100%
          by observation   growl left 67%, growl right 100%
          by action        listen 67%, open left 100%, open right -
        actions            listen 75%, open left 25%, open right 0%
        rows without data  1 of 2 unknown rows: emission (right)
          least visited    3 (emission (left))
        """
        from homdp_ppl.core.episodes import Episodes
        from homdp_ppl.core.log_summary import HasForm, summarised

        log, model = cast(Episodes, self), cast("HasTables | None", homdp)
        if homdp is not None:
            spaces = spaces_of(homdp, "summary")
            log = Episodes.of(log, spaces)
            if spaces.finite and not isinstance(homdp, HasForm):  # such as a Plan
                model = spaces
        return summarised(log, model)
