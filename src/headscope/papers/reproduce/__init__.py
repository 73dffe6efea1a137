"""What of a paper holds, line by line, with this model and these data?

A paper is data: `clark2019`, `kovaleva2019`, `kobayashi2020` list sections of lines, in the paper's
order. A line says what is claimed, what was published, and how the same is read off our runs.

papers ─► battery: desk (runs, resumable) ─► lines ─► verdict ─► lines.csv, .json, report.html
"""
