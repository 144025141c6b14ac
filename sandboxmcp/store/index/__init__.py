"""The index and the catalogue of sources: what is added, and what is taken out again."""

__all__ = ["adding", "bulk_add", "catalogue", "deletion", "indexer"]
