"""The live page: interactive fits that the user can change and repeat.

- `asking`: the requests of the page, validated as files are
- `choices`: how an event is fitted, and the resulting fit
- `session`: all events with their fits, and the steps that can be undone or redone
- `working`: work in separate processes, which can be stopped
- `saving`: writes the formulas file and the model file that the commands read
- `document`: the page that shows the session
- `doors`: access control of the page
- `server`: serves the page, and the messages to and from it
"""
