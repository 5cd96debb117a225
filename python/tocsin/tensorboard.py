"""What a run has written to a directory, as event files that TensorBoard shows."""

import sys

from .frameworks.tensorboard import NoTensorBoard, export, histogram_of, main, scalars_of

__all__ = ["NoTensorBoard", "export", "histogram_of", "main", "scalars_of"]


if __name__ == "__main__":
    sys.exit(main())
