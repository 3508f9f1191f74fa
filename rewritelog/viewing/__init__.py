"""Figures and HTML pages of logs and fits; all need the extra `[view]`.

- `extra`: imports from the extra, only when needed
- `palette`: colours that people with any kind of colour vision can distinguish
- `page`: pages of plots and tables in one HTML file, with templates, scripts and style from
  `assets`; `plots`: Bokeh figures in the style of all pages
- `spans`: SEBs and brackets of logs or of a replay; `timeline`: rows of PEs, cells and bars made of
  them; `messages`: lines between them; `draw`, `timeline_figure`, `timeline_page`: their pictures
- `events`: what a page shows of each event; `event_data`: the same as JSON; `sampled`: its points
- `overview`: the table of events by parameters
- `event_plots`, `swaps`: plots that a script fills with the chosen event or option
- `fit_pages`, `compare_page`, `rewrite_page`, `sample_page`, `replay_page`, `info_page`: the pages
  of `--html`; `sweep_plot`, `fit_figure`: other figures
- `explore`, `explorer`: the live page
"""
