"""Output folders that are whole or not there, and the files in them.

- `folders`: a folder made beside its place, which takes its name when it is whole
- `lock`: whose turn it is to write a folder, and whether that process is still alive
- `files`: output files written in pieces, copied, and flushed to the disk
"""

from rewritelog.output.files import (
    OutputFile,
    check_outputs,
    copy_file,
    create_file,
    flush_files,
    write_text_file,
)
from rewritelog.output.folders import new_folder

__all__ = [
    "OutputFile",
    "check_outputs",
    "copy_file",
    "create_file",
    "flush_files",
    "new_folder",
    "write_text_file",
]
