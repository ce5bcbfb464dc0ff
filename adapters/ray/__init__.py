"""Sessions in the processes of a Ray cluster (semantics 17). Extra ``ray``."""

from .cluster import Cluster
from .remote_session import RemoteSession
from .remote_turn import RemoteTurn

__all__ = ["Cluster", "RemoteSession", "RemoteTurn"]
