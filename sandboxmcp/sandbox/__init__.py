"""The walls: how a bubblewrap sandbox is described, started, limited and proved to work."""
