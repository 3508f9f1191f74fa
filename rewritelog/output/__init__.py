"""Output folders that are whole or not there, and the files in them.

- `folders`: a folder made beside its place, which takes its name when it is whole
- `lock`: whose turn it is to write a folder, and whether that process is still alive
- `files`: their files, written in pieces, copied, and flushed to the disk
- `texts`: reports, model files and lists, checked before the work and then whole or as they were
"""

from rewritelog.output.files import OutputFile, copy_file, create_file, flush_files
from rewritelog.output.folders import new_folder
from rewritelog.output.texts import check_outputs, write_file, write_text_file

__all__ = [
    "OutputFile",
    "check_outputs",
    "copy_file",
    "create_file",
    "flush_files",
    "new_folder",
    "write_file",
    "write_text_file",
]
