"""Pictures and pages of logs and fits; all need the extra `[view]`.

- `extra`: what the extra brings, asked for only where it is used
- `palette`: colours that people with any kind of colour vision can tell apart
- `page`: pages of plots and tables in one HTML file; their scripts and style are in `assets`
- `timeline`, `messages`, `draw`, `timeline_figure`, `timeline_page`: SEBs over time
- `events`: what a page shows of each event; `event_data` is that as JSON, drawn by seed
- `overview`: the table of events by parameters
- `event_plots`, `swaps`: plots into which a script puts what is chosen
- `fit_pages`, `compare_page`, `rewrite_page`, `sample_page`: the pages of `--html`
- `explore`, `explorer`: the live page
"""
