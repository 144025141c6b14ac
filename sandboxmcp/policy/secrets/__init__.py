"""Credentials in text and files: found by shape, by key and by file name, and masked. Pure."""

__all__ = ["credential_files", "redactor"]
