"""A queue of bounded length as a Python list: what a ring must do, one call after the other."""


class Queue:
    """Messages in order; none is accepted when `slots` are waiting."""

    def __init__(self, slots):
        self.slots, self.messages = slots, []

    def push(self, messages):
        """Take as many of `messages` as there is room for; return how many."""
        taken = messages[: self.slots - len(self.messages)]
        self.messages += taken
        return len(taken)

    def pop(self, most):
        """Give the oldest messages, at most `most`."""
        given, self.messages = self.messages[:most], self.messages[most:]
        return given
