"""The live page: interactive fits that the user can change and repeat.

Its server is one of tornado's. Bokeh's was tried (3.9, an application behind a prefix with the
token, signed session ids, allowed origins, limits for connections that are idle). It refuses
sockets of foreign origins and requests without the token as SECURITY.md says, and would replace
about 60 lines here. But it takes over whatever a browser sends of any model of the page (in the
trial a message renamed the document, resized a plot, and added a model with a script), where
requests are few kinds here, each checked key by key. It answers requests with another host's name,
and sockets without an origin. Its documents are one per page; here all pages show one session.

- `requests`: the requests of the page: whose are accepted, and what each does
- `session`: how each event is fitted, the fits, and the steps that can be undone or redone
- `workers`: work in separate processes, which can be stopped
- `saving`: writes the formulas file and the model file that the commands read
- `server`: serves the page that shows the session, and the messages to and from it
"""
