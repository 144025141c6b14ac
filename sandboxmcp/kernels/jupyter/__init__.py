"""The Jupyter side of kernels: kernelspecs, provisioner, manager, connection, and one live kernel with its client."""

__all__ = ["connection", "displayed", "kernelspecs", "live_kernel", "manager"]
