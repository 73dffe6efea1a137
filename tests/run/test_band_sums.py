"""Do the sums of bands hold what inputs of their lengths gave, and nothing else?"""

from __future__ import annotations

import numpy as np
import pytest

from headscope.run.analysis import Analysis, Scope
from headscope.run.band_sums import BandSums, OfBand

INPUTS = [[0] * length for length in (5, 16, 100, 20, 7, 31)]  # of so many tokens


class Tokens(Analysis):
    name = "tokens"

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.total = self.sums()


@pytest.mark.parametrize("parts", [[range(6)], [range(3), range(3, 6)]])
def test_bands_hold_what_their_inputs_gave_in_however_many_readings(parts):
    scope = Scope(layers=1, heads=1, replicates=4)
    whole = Tokens(scope)
    of_bands = {band: {"tokens": OfBand(Tokens(scope))} for band in ("up to 16", "17 to 32")}
    sums = BandSums([whole], of_bands)
    for places in parts:
        for some in sums.apart(list(places), INPUTS):
            lengths = np.array([float(len(INPUTS[at])) for at in some])
            whole.total.add(lengths, np.array([at % 4 for at in some]))
    of_each = [few["tokens"].sums_by_name["total"] for few in of_bands.values()]
    assert [float(one.total) for one in of_each] == [5 + 16 + 7, 20 + 31]
    assert whole.total.by_group.tolist() == [5 + 7, 16 + 31, 100, 20]
