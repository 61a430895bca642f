"""Locks are tested with files on the disk: /dev/shm is open to every locked system."""

from tests.temporary_files import temporary_files_on_disk as temporary_files_on_disk
from tests.temporary_files import tmp_path_factory as tmp_path_factory
