"""Output folders that are complete or do not exist, and output files.

- `folders`: a folder written under a temporary name, and renamed when it is complete
- `lock`: the lock on an output folder, which also detects processes that have died
- `files`: the files of a folder, written in pieces, copied, and flushed to the disk
- `flushing`: work of several processes that write files, each of which flushes its own
- `texts`: single files, checked before the work begins, and replaced atomically
- `companions`: the files beside the timelines, copied without links to private files
- `drawing`: matplotlib with defined settings
"""

from rewritelog.output.files import OutputFile, copy_file, create_file, flush_files
from rewritelog.output.folders import check_new_folder, new_folder
from rewritelog.output.texts import check_outputs, write_file, write_text_file

__all__ = [
    "OutputFile",
    "check_new_folder",
    "check_outputs",
    "copy_file",
    "create_file",
    "flush_files",
    "new_folder",
    "write_file",
    "write_text_file",
]
