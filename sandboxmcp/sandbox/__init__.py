"""The walls: how a bubblewrap sandbox is described, started, limited and proved to work."""

__all__ = [
    "applying",
    "broker",
    "bwrap",
    "cgroup",
    "changes",
    "covered",
    "hints",
    "masked",
    "overlay",
    "plan",
    "probe",
    "process",
    "protect",
    "secret_names",
    "usage",
    "watch",
]
