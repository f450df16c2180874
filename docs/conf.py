"""The documentation site: `make docs` builds it into docs/_build/html."""

from __future__ import annotations

import inspect
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

from site_names import link_literals, resolve_name  # noqa: E402
from site_pages import draw_figures, follow_links_out, set_edit_address, write_overview  # noqa: E402
from site_results import write_chapters  # noqa: E402

import codiag  # noqa: E402
from codiag.extending import MomentModel  # noqa: E402

HOOKS = {name for base in MomentModel.__mro__[:2] for name in vars(base)} - {"fit"}
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REPOSITORY = METADATA.get("urls", {}).get("Repository", "https://github.com/codiag/codiag").rstrip("/")

project = "codiag"
author = "The codiag developers"
copyright = author  # noqa: A001
release = version = codiag.__version__
summary = METADATA["description"]

extensions = [
    "myst_parser",
    "numpydoc",
    "site_gallery",
    "site_math",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "_templates",
    "_figures",
    "extending/README.md",
    "theory/tables",
    "gallery/*.ipynb",
    "gallery/*.py",
]
nitpicky = True
show_warning_types = True
suppress_warnings = ["config.cache"]  # functions in sphinx_gallery_conf
default_role = "autolink"  # names in single backticks: a link where there is a page for them

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
myst_html_meta = {  # what is shown where somebody shares a link
    "description": summary,
    "property=og:title": "codiag",
    "property=og:description": summary,
    "property=og:type": "website",
    "property=og:image": f"{METADATA['urls']['Documentation']}_static/social.png",
    "name=twitter:card": "summary_large_image",
}

autosummary_generate = True
autodoc_typehints = "none"  # docstrings have the types, in words
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_class_members_toctree = False

if os.environ.get("CODIAG_DOCS_INTERSPHINX"):  # needs the network
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        name: (f"https://{place}/", None)
        for name, place in {
            "python": "docs.python.org/3",
            "numpy": "numpy.org/doc/stable",
            "scipy": "docs.scipy.org/doc/scipy",
            "sklearn": "scikit-learn.org/stable",
        }.items()
    }

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = f"codiag {release}"
html_baseurl = METADATA["urls"]["Documentation"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["codiag.css"]
html_theme_options = {
    "github_url": REPOSITORY,
    "header_links_before_dropdown": 5,
    "icon_links": [],
    "navbar_align": "left",
    "logo": {"text": "codiag", "alt_text": "codiag, the first page"},
    "navbar_start": ["navbar-logo", "version"],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "secondary_sidebar_items": ["page-toc", "edit-link"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "use_edit_page_button": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"index": [], "changelog": [], "glossary": []}
html_copy_source = False
html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/{name}" for name in ("first_steps", "real_data", "models", "sources", "theory")],
    "within_subsection_order": "site_gallery.position",
    "reset_modules": ("matplotlib", "site_gallery.restyle"),
    "parallel": 2,
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "download_all_examples": False,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("codiag",),
    "reference_url": {"codiag": None},
    "image_srcset": ["2x"],
}

linkcheck_anchors = False
linkcheck_timeout = 20
linkcheck_ignore = [rf"{REPOSITORY}/.*"]  # pages of this very revision, which may not be public yet


def of_codiag(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what is no concern of a user of a class.

    That is what it inherits from other libraries, such as set_params, classes that it refers to, and what models do for
    their common base, which is told there.
    """
    if inspect.isclass(member) or (name in HOOKS and app.env.docname.startswith("api/generated/codiag.models.")):
        return None if app.env.docname.endswith(".MomentModel") else True
    found = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "func", member))
    module = getattr(found, "__module__", None)
    return True if module is not None and not module.startswith("codiag") else None


def setup(app: Any) -> None:
    """Draw the figures of pages by their own code, and lead links out of this folder to where they go on the site."""
    app.connect("builder-inited", draw_figures)
    app.connect("builder-inited", write_chapters)
    app.connect("html-page-context", set_edit_address)
    app.connect("build-finished", write_overview)
    app.connect("source-read", follow_links_out)
    app.connect("autodoc-skip-member", of_codiag)
    app.connect("missing-reference", resolve_name)
    app.connect("doctree-resolved", link_literals)
    app.add_config_value("repository", REPOSITORY, "env")
    app.add_config_value("summary", summary, "env")
