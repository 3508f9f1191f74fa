"""Made timelines in closed form, and their bytes."""
