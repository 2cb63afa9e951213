"""Sphinx configuration, used by `make docs`.

Neither building nor reading the pages requires network access.
"""

import os
import sys
from importlib.metadata import version as installed
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent))  # the scripts in this directory

import api_pages
import docstrings
import draw_map
import notebooks

project = "homdp_ppl"
author = "the homdp_ppl contributors"
release = version = installed("homdp_ppl")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # bundles MathJax; the default loads it from a server
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks are committed with their outputs
nb_ipywidgets_js = {}  # the default is loaded from a server

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"Array": "Array", "ArrayLike": "ArrayLike"}
autodoc_default_options = {
    "members": True,
    # members inherited from these classes are not documented
    "inherited-members": "tuple,ValueError,BaseException,Protocol,Generic,Env,Wrapper",
}
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_attr_annotations = False
napoleon_use_param = False
napoleon_use_rtype = False
# Attributes are a list; members with a docstring also have their own entries.
napoleon_custom_sections = [("Attributes", "params_style")]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "homdp_ppl"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}


def setup(app):
    """Generate pages from the code before Sphinx reads them, and register the docstring hooks."""
    here = Path(__file__).parent
    api_pages.write(here / "api" / "generated")
    notebooks.copy(here.parent / "tutorials", here / "tutorials")
    draw_map.write(here / "_static" / "map.svg")
    for module in api_pages.overloaded():
        docstrings.one_signature(module)
    app.connect("autodoc-process-signature", docstrings.signature)
    # napoleon has priority 500: prepare runs before it, restore after it
    app.connect("autodoc-process-docstring", docstrings.prepare, priority=400)
    app.connect("autodoc-process-docstring", docstrings.restore, priority=600)
    app.connect("autodoc-skip-member", docstrings.skip)
    app.connect("source-read", notebooks.redirect)
    app.connect("doctree-read", api_pages.link)
    app.connect("missing-reference", api_pages.resolve)
