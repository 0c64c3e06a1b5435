"""Errors that are the user's to mend: the command line shows them as one line and exits with 2."""


class UserError(Exception):
    """An input or an option that photonlab cannot work with; the message names it and says what was expected."""


class ItchFormatError(UserError):
    """Bytes that are not a feed of ITCH 5.0 messages; the message gives the file, the offset and what was expected."""


class Failure(Exception):
    """Work that was understood and has failed, and no fault of the user's: the command line exits with 1."""
