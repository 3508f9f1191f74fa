"""The live page: fits changed and tried again, by whoever looks at them.

- `asking`: what the page asks for, validated as files are
- `choices`: how an event is fitted, and the fit that this gives
- `session`: all events with their fits, what was done, and what can be undone
- `working`: work in a process of its own, which can be stopped
- `saving`: the formulas file and the model file that the command line takes
- `document`: the page that shows the session
- `server`: who may ask for the page, and the conversation with it
"""
