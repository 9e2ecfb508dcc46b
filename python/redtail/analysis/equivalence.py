"""Whether two cases are equal within a margin, by two one-sided tests.

That two cases are "not distinguishable" says that too little is known to tell them apart, and not
that they are equal. Equality is shown by two tests (Schuirmann): that the mean difference is not
above the margin, and that it is not below it with the other sign. Each is Student's paired test at
5 %, so cases whose difference is the margin or more are found equal in at most 5 % of comparisons.
It is the same as a 90 % interval of the difference that lies within the margin. `gap` judges
backends in the same way, with the 95 % interval that it prints.

There is no verdict without an interval: of one replication, of copies, of values most of which are
equal, and of metrics that `rare` refuses one. A margin that is a share is one of the baseline's
mean, whose own uncertainty is left out: if the mean is off by 10 %, so is the margin.

Source: D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power approach
for assessing the equivalence of average bioavailability", Journal of Pharmacokinetics and
Biopharmaceutics 15 (1987) 657-680.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from redtail import metrics as names
from redtail.analysis.stats import Estimate, t_above, t_quantile
from redtail.analysis.tolerances import Tolerance, parse
from redtail.errors import SpecError


def p_equal(difference: Estimate, margin: float) -> float | None:
    """Return the larger p-value of the two one-sided tests; None where there is no interval.

    Args:
        difference: the mean difference with its 95 % interval, which is Student's.
        margin: how large the difference may be; above 0.

    >>> p_equal(Estimate(0.0, None, 10, "all are equal"), 1.0)
    >>> round(p_equal(Estimate(0.0, 2.262157, 10), 1.833113), 6)
    0.05
    """
    if difference.ci95 is None or not difference.ci95 > 0 or not margin > 0:
        return None
    degrees = difference.n - 1
    error = difference.ci95 / t_quantile(0.95, degrees)
    nearest = margin - abs(difference.mean)  # the side that the difference is nearer to decides
    return t_above(nearest / error, degrees)


class Margins:
    """How far cases may be apart to count as equal.

    Args:
        texts: a margin for all metrics ("2 %"), or of one ("goodput=2 %", "loss=0.2 points"), as
            tolerances are written; that of a metric goes before that for all.
        where: what stands before a text in messages.

    Raises:
        SpecError: a text is no margin, or one is given twice.

    >>> margins = Margins(["2 %", "loss=0.5 points"])
    >>> margins.of("goodput").text, margins.of("loss").text
    ('2 %', '0.5 points')
    """

    def __init__(self, texts: str | Sequence[str], where: str = "equal_within: ") -> None:
        self.where = where
        self._texts: dict[str, str] = {}
        for text in [texts] if isinstance(texts, str) else texts:
            name, sign, value = text.partition("=")
            key = name.strip() if sign else ""
            value = (value if sign else text).strip()
            if key in self._texts:
                raise SpecError(f"{where}{text}: a margin of {key or 'all'} is given twice")
            if names.base(key) in names.METRICS:
                parse(key, value, where)
            elif not key:
                _require_share(value, where)
            self._texts[key] = value

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Refuse a margin of a metric that is not compared.

        Raises:
            SpecError: there is one.
        """
        compared = list(known)
        for key in self._texts:
            if key and key not in compared:
                raise SpecError(
                    f"{self.where}{key}: is not compared; accepted: {', '.join(compared)}", key=key
                )

    def of(self, metric: str) -> Tolerance | None:
        """Return the margin of a metric; None without one."""
        text = self._texts.get(metric, self._texts.get(""))
        return None if text is None else parse(metric, text, self.where)


def _require_share(text: str, where: str) -> None:
    """Refuse a margin for all metrics that is not a share, which alone suits each of them."""
    try:
        found = parse("fairness", text)  # of a ratio, which has no other unit
    except SpecError:
        found = None
    if found is None or found.absolute is not None:
        raise SpecError(
            f"{where}{text!r}: not a margin for all metrics; accepted: a share above 0 such as "
            "'2 %', or METRIC=VALUE such as 'loss=0.2 points'"
        )
