"""How the site is made of these pages: `make site`. Nothing is fetched, here or by the pages."""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "extensions"))
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]

project = PROJECT["name"]
version = release = PROJECT["version"]
repository = PROJECT["urls"]["Source"]
author = PROJECT["authors"][0]["name"]
project_copyright = author
exclude_patterns = ["extensions"]
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "commands",
    "docstrings",
    "first_view",
    "repository_links",
]

# Pages are Markdown that a code host shows too; headings are linked as there.
smartquotes = False  # --text stays what is typed
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

first_view = "The cat sat on the mat because it was tired."

# Notebooks run in this interpreter, each time: what is kept would not know that headscope changed.
nb_execution_mode = "force"
nb_execution_timeout = 600  # seconds of a cell that hangs, on a busy machine too
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
nb_output_stderr = "remove"  # bars of progress
nb_ipywidgets_js = {}  # else pages with widgets ask another host for scripts

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["static"]
html_css_files = ["site.css"]
html_logo = "static/logo.svg"
html_favicon = "static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": project},
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
}
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

# --- the reference ---------------------------------------------------------------------------

autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
default_role = "code"
nitpicky = True
# Types of other packages, and names of types that are written without their module; ours must be
# on a page.
OTHERS = "collections|torch|numpy|xarray|xr|pandas|pd|matplotlib|transformers|pathlib|os"
BARE = (
    "Path|Figure|PreTrainedModel|Trainer|CorpusLike|DeviceMap|Intervention|Observer|Progress|Stack"
)
nitpick_ignore_regex = [("py:.*", rf"({OTHERS})\..*|{BARE}")]
