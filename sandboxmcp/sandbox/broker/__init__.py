"""The broker: named programs with named argument shapes, run for a session outside its wall, each in a sandbox of its own."""
