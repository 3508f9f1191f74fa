"""The live page: interactive fits that the user can change and repeat.

A page holds the choices for its events, and the steps to undo and redo. Each of its requests sends
all choices; the server keeps only fits. Bokeh's own server would accept any change of any model of
the page that a browser sends (in a trial a message renamed the document, resized a plot, and added
a model with a script), requests with another host's name, and sockets without an origin. Here
requests are of few kinds, each checked key by key.

- `requests`: what the page asks for
- `session`: the choices for each event, the fits that were made, and the formulas file and the
  model file that are saved for the commands
- `processes`: work in other processes, which can be stopped
- `server`: serves the page to its user alone, and answers its requests
"""
