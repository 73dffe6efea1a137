"""What a report says of the question `frames`."""

from __future__ import annotations

from headscope.analyses.frames.tables import frames_table
from headscope.analyses.language.tables import notes
from headscope.page.sections import LANGUAGE, SectionPlan

SECTIONS = (
    SectionPlan(
        id="frames",
        title="Frames: who links an element to what evokes the frame?",
        text=(
            "In “She was agitated”, “agitated” evokes a frame in which “she” has a role. A head "
            "scores by its attention between the two, in sentences where they stand apart."
        ),
        pictures=("frames",),
        tables=(frames_table,),
        notes=notes(("frames",), "frames"),
        chapter=LANGUAGE,
        groups=("frames",),
        wanted="frames (FrameNet: --frames)",
        tables_first=True,
        chooses=False,
    ),
)
