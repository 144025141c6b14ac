"""Packs: policy rules as TOML, loaded, checked and shown in words."""

__all__ = ["broker_tables", "pack", "showing", "toml_lines"]
