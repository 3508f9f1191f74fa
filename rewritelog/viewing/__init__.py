"""Pictures of logs and fits: timelines, pages and the live page; needs the extra `[view]`."""
