"""The compiled loops of exports: lists of brackets, and the text of GOAL schedules."""
