"""The live page: interactive fits that the user can change and repeat.

A page holds how its events are to be fitted, and its steps; each of its requests says all of it,
and the server keeps fits alone. Bokeh's own server would take over whatever a browser sends of any
model of the page (in a trial a message renamed the document, resized a plot, and added a model with
a script), where requests are few kinds here, each checked key by key; and it answers requests with
another host's name, and sockets without an origin.

- `requests`: what the page asks for
- `session`: how each event can be fitted, the fits that were made, and the formulas file and the
  model file that are saved for the commands
- `processes`: work in other processes, which can be stopped
- `server`: serves the page to its user alone, and answers its requests
"""
