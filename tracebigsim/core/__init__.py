"""The compiled core of tracebigsim: the scan of text for timing lines."""
