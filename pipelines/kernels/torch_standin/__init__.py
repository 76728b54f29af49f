"""A stand-in for torch, for launch code where torch is not installed: types, shapes, strides, addresses.

It is explicit: what is not here raises an error that names it (``MissingError``), so that ``hasattr`` and version
checks go as with a torch that lacks it. Values exist only for small tensors made from known ones; reading others
raises ``UnknownValueError``. Nothing is compared: ``assert_close`` and ``allclose`` agree, since kernels do not run.
"""

from pipelines.kernels.torch_standin.build import VERSION, install

__all__ = ["VERSION", "install"]
