"""The walls: how a bubblewrap sandbox is described, started, limited and proved to work."""

__all__ = [
    "bwrap",
    "cgroup",
    "hints",
    "installations",
    "overlay",
    "plan",
    "probe",
    "process",
    "protection",
    "usage",
    "watch",
    "workspace",
]
