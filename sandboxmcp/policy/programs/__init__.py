"""Programs: their options, what they run, what they do to files, and which command lines the broker takes. Pure."""

__all__ = [
    "addresses",
    "argv",
    "brokered_programs",
    "code_files",
    "curl_options",
    "effects",
    "knowledge",
    "options",
    "order",
    "shapes",
    "urls",
]
