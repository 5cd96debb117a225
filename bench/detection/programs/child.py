"""Runs one program as it stands, with the hook attached to its first `fit`, and writes a note of what was trained.

    python child.py --out JOURNAL --job NAME --title RUN --note FILE --seconds 30 PROGRAM

The program gets old Keras's names (old_keras.py). It ends behind the first training: what it evaluates, plots or saves afterwards is left out.
`--seconds` of processor time end the training between two updates; the plan that the hook sees is the program's own."""
import argparse
import json
import os
import pathlib
import runpy
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")


class Trained(SystemExit):
    """The first training is over."""


def _limit(keras, seconds):
    class Limit(keras.callbacks.Callback):
        """Ends the training when its time is up."""

        def on_train_begin(self, logs=None):
            self.end = time.process_time() + seconds

        def on_train_batch_end(self, batch, logs=None):
            if time.process_time() > self.end:
                self.model.stop_training = True
    return Limit()


def attach(keras, options, seconds, tell):
    """The hook in every `fit` of Keras, as `tocsin run` puts it there; behind the first one `tell(note)` and the end of the program."""
    from tocsin import _attach
    from tocsin.keras import TocsinCallback
    made = []

    def make():
        made.append(TocsinCallback(**options))
        return made[-1]
    inner = _attach.with_callback(keras.Model.fit_of_today, "keras.Model.fit", make)

    def fit(self, *args, **kwargs):
        given = kwargs.pop("callbacks", None)
        kwargs["callbacks"] = [*(given if isinstance(given, (list, tuple)) else [given] if given else []), _limit(keras, seconds)]
        inner(self, *args, **kwargs)
        hook = made[-1]._watcher.hook
        hook.close(timeout=30)
        tell({"run": hook.run, "steps": int(self.optimizer.iterations)})
        raise Trained(0)
    keras.Model.fit_of_today = fit


def prepare():
    """Imports what most programs import, and gives it its old names; a program may then run in a fork. Returns keras."""
    from bench.detection.programs import old_keras, old_python
    old_python.install()
    return old_keras.install()


def main(arguments=None):
    """`arguments`: those of the command; None: the process's own."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("out", "job", "title", "note"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--digits", help="zipped table of digits that stands for MNIST")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("program")
    chosen = parser.parse_args(arguments)
    from bench.detection.programs import digits
    keras = prepare()
    attach(keras, {"out": chosen.out, "job": chosen.job, "run": chosen.title}, chosen.seconds,
           lambda note: pathlib.Path(chosen.note).write_text(json.dumps(note)))
    if chosen.digits:
        keras.datasets.mnist.load_data = lambda *_, **__: digits.load_data(chosen.digits)
    keras.utils.set_random_seed(chosen.seed)
    program = pathlib.Path(chosen.program).resolve()
    os.chdir(program.parent)
    sys.argv, sys.path[0] = [str(program)], str(program.parent)
    runpy.run_path(str(program), run_name="__main__")


if __name__ == "__main__":
    main()
