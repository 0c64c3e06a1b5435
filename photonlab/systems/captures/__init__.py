"""Captures: MoldUDP64 out of pcap and pcapng files, as a stream that a replay can read."""

from photonlab.systems.captures.stream import MAGIC_BYTES, CaptureStream, is_capture

__all__ = ["MAGIC_BYTES", "CaptureStream", "is_capture"]
