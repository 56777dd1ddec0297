"""The exceptions of Cairn: one class per status code of the C++ library."""


class Error(Exception):
    """The base class of all exceptions of Cairn."""


class InvalidArgument(Error, ValueError):
    """An argument that no index supports, or that this one does not support."""


class ArgumentTypeError(InvalidArgument, TypeError):
    """An argument has the wrong type; the message names it, the expected and the found type."""


class KeyTypeError(ArgumentTypeError):
    """Keys have another type, shape, stride or byte order than the index; the message has what was expected and found."""


class OutputTypeError(ArgumentTypeError):
    """An `out` array that cannot take the results; the message has what was expected and found."""


class NotFound(Error, FileNotFoundError):
    """There is no such index, database or column family."""


class AlreadyExists(Error):
    """A unique index would contain a key twice."""


class FailedPrecondition(Error):
    """The index is not of this database, or the log does not have all changes."""


class Closed(FailedPrecondition):
    """The index has been closed."""


class Forked(FailedPrecondition):
    """The index or snapshot was opened before a fork and is used in the child."""


class OutOfRange(Error, IndexError):
    """A row id that does not exist."""


class DataLoss(Error):
    """A file is damaged."""


class ResourceExhausted(Error, MemoryError):
    """Memory, disk space or the row ids of an index are exhausted."""


class Unavailable(Error):
    """There is no such device, or another process writes to the index."""


class Unimplemented(Error, NotImplementedError):
    """A database or an ordered index that Cairn does not support."""


class Cancelled(Error):
    """The call was cancelled."""


class DeadlineExceeded(Error, TimeoutError):
    """The call was not complete within its `timeout`."""


class Internal(Error):
    """A defect of Cairn, or a system error without a separate class."""


__all__ = [
    name for name, value in list(globals().items()) if isinstance(value, type) and issubclass(value, Error)
]
