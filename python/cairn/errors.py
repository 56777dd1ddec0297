"""The exceptions of Cairn: one class for each status code of the C++ library."""


class Error(Exception):
    """Base of all of Cairn's exceptions."""


class InvalidArgument(Error, ValueError):
    """An argument that no index would take, or that this one does not."""


class ArgumentTypeError(InvalidArgument, TypeError):
    """An argument of another type than its function takes; says which, what was expected and found."""


class KeyTypeError(ArgumentTypeError):
    """Keys of another type, shape, stride or byte order than the index has; says what was expected and found."""


class OutputTypeError(ArgumentTypeError):
    """An `out` array that cannot take the answers; says what was expected and found."""


class NotFound(Error, FileNotFoundError):
    """There is no such index, database or column family."""


class AlreadyExists(Error):
    """A unique index would get a key twice."""


class FailedPrecondition(Error):
    """The index is not of this database, or the log no longer tells all that changed."""


class Closed(FailedPrecondition):
    """The index has been closed."""


class Forked(FailedPrecondition):
    """The index or snapshot was opened before a fork, and is used in the child."""


class OutOfRange(Error, IndexError):
    """A row id that does not exist."""


class DataLoss(Error):
    """A file is damaged."""


class ResourceExhausted(Error, MemoryError):
    """Not enough memory, disk space or free row ids of an index."""


class Unavailable(Error):
    """No such device, or another process writes to the index."""


class Unimplemented(Error, NotImplementedError):
    """A database or an ordered index that Cairn does not support."""


class Cancelled(Error):
    """The call was cancelled."""


class Internal(Error):
    """A defect of Cairn, or an error of the system that has no class of its own."""


__all__ = [
    name for name, value in list(globals().items()) if isinstance(value, type) and issubclass(value, Error)
]
