"""The live page: interactive fits that the user can change and repeat.

A page holds how its events are to be fitted, and its steps; each of its requests says all of it,
and the server keeps fits alone. Bokeh's own server was tried in place of tornado's (3.9, an
application behind a prefix with the token, signed session ids, allowed origins, limits for
connections that are idle): it takes over whatever a browser sends of any model of the page (in the
trial a message renamed the document, resized a plot, and added a model with a script), where
requests are few kinds here, each checked key by key; it answers requests with another host's name,
and sockets without an origin.

- `requests`: the requests of the page: whose are accepted, and what each asks for
- `session`: how each event can be fitted, and the fits that were made
- `saving`: writes the formulas file and the model file that the commands read
- `server`: serves the page, and answers its requests, by work in processes that can be stopped
"""
