"""The best passages ordered anew by what they mean, with the word vectors that the package wordllama ships: the extra [semantic].

Static vectors, one for each of 32,000 pieces of words, averaged over a text: a few milliseconds for fifty passages, no model is
run and nothing is downloaded. The package's files are read here, not its code, which asks the network for its tokenizer (0.4.0
looks for it in another folder than its wheel has it in) and imports an HTTP client.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sandboxmcp.core.errors import UsageError
from sandboxmcp.store.search.rank import Ranked

_DEPTH = 50
"""Passages that are ordered anew."""
_WEIGHT = 0.3
"""Of likeness in meaning, beside 0.7 of the score by words. A weighted sum: to join the two orders by rank is worse."""
_FIX = "Install it with: pip install 'sandboxmcp[semantic]', or unset search.semantic."


class Meaning:
    """The vectors, loaded when they are first needed. Shared by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any, Any] | None = None

    def reordered(self, query: str, order: Sequence[Ranked]) -> list[Ranked]:
        """The first fifty by words and meaning together, then the others; scores stay comparable.

        Raises:
            UsageError: the extra is not installed, or is not the version that we know.
        """
        best = max((one.score for one in order), default=0.0)
        texts = [f"{one.candidate.title}\n{one.candidate.body}" for one in order[:_DEPTH]]
        alike = self._likeness(query, texts) if best > 0 else []
        first = [
            replace(one, score=(1 - _WEIGHT) * one.score + _WEIGHT * best * likeness)
            for one, likeness in zip(order, alike, strict=False)
        ]
        first.sort(key=lambda one: -one.score)
        return first + [replace(one, score=(1 - _WEIGHT) * one.score) for one in order[len(first) :]]

    def _likeness(self, query: str, texts: Sequence[str]) -> list[float]:
        """The cosine of each text's vector and the query's."""
        numpy, tokenizer, vectors = self._parts()
        means = []
        for encoding in tokenizer.encode_batch([query, *texts], add_special_tokens=False):
            mean = vectors[encoding.ids].astype(numpy.float32).sum(axis=0)
            means.append(mean / (numpy.linalg.norm(mean) or 1.0))
        return [float(value) for value in numpy.stack(means[1:]) @ means[0]]

    def _parts(self) -> tuple[Any, Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load()
            return self._loaded


def _load() -> tuple[Any, Any, Any]:
    """numpy, the tokenizer, and the vectors: a row of 256 half floats for each of its tokens."""
    found = importlib.util.find_spec("wordllama")
    try:
        numpy, tokenizers, safetensors = (importlib.import_module(name) for name in ("numpy", "tokenizers", "safetensors.numpy"))
    except ImportError:
        found = None
    if found is None or not found.submodule_search_locations:
        raise UsageError("search.semantic is on, and its vectors are not installed", _FIX)
    folder = Path(found.submodule_search_locations[0])
    weights = sorted(folder.glob("weights/l2_supercat_256.safetensors"))
    described = sorted(folder.glob("tokenizer*/l2_supercat_tokenizer_config.json"))
    if not (weights and described):
        raise UsageError(f"wordllama in {folder} does not hold the vectors that search.semantic reads", _FIX)
    (vectors,) = safetensors.load_file(weights[0]).values()
    tokenizer = tokenizers.Tokenizer.from_file(str(described[0]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return numpy, tokenizer, vectors
