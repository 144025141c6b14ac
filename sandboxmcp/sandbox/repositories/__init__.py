"""Repositories in the workspace: walk it for them, judge what git and other tools would run of them, move aside what is planted."""

__all__ = ["folder_walk", "git_exec_paths", "git_folder", "watch"]
