"""The live page: interactive fits that the user can change and repeat.

It has a server of its own on tornado, and not Bokeh's, with which SECURITY.md could not promise
what it does: that one applies changes of any property of the page's models that a browser sends,
where this one checks a few kinds of requests key by key; it makes a document and a session for each
page, where all pages show one session here; it sends no content security policy, and does not close
connections that wait without a request.

- `requests`: the requests of the page: whose are accepted, and which
- `session`: how each event is fitted, the fits, and the steps that can be undone or redone
- `workers`: work in separate processes, which can be stopped
- `saving`: writes the formulas file and the model file that the commands read
- `server`: serves the page that shows the session, and the messages to and from it
"""
