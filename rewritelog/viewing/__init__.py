"""Figures and HTML pages of logs and fits; all need the extra `[view]`.

- `extra`: imports from the extra, only when needed
- `page`: pages of plots and tables in one HTML file, with templates, scripts and style from
  `assets`; `plots`: Bokeh figures in the style of all pages, and their colours
- `spans`: SEBs and brackets of logs or of a replay, and the messages between them; `timeline`:
  rows of PEs, cells and bars made of them; `draw`: their pictures
- `events`: what a page shows of each event, also as JSON
- `fit_pages`, `compare_page`, `rewrite_page`, `sample_page`, `replay_page`, `info_page`: the pages
  of `--html`; `pictures`: those of notebooks
- `explore`, `explorer`: the live page
"""
