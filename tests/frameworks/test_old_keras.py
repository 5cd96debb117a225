"""bench/detection/programs: a program of Keras 1 runs on Keras 3 as it stands, with the hook in its `fit`; it is judged beside its corrected version."""
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Ours, in the style of 2016: what the shim has to know stands in one program.
PROGRAM = """
    import numpy as np
    import time
    import keras
    import matplotlib.pyplot as plt
    from keras.models import Sequential
    from keras.layers.core import Dense, Activation, Dropout
    from keras.optimizers import SGD
    from keras.utils import np_utils
    from keras.utils.vis_utils import plot_model

    start = time.clock()
    x = np.random.uniform(-1, 1, (640, 6)).astype(np.float)
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int)
    model = Sequential()
    model.add(Dense(input_dim=6, output_dim=16, init='uniform'))
    model.add(Activation('relu'))
    model.add(Dropout(p=0.1))
    model.add(Dense(1, init='normal', W_regularizer=None))
    model.add(Activation('ACTIVATION'))
    model.compile(loss='mean_squared_error', optimizer=SGD(lr=0.5, decay=1e-3, momentum=0.5, nesterov=True), metrics=['acc'])
    assert model.layers[0].input_shape == (None, 6) and model.layers[-1].output_shape == (None, 1)
    assert abs(float(model.optimizer.learning_rate) - 0.5) < 1e-6
    plt.plot(x[:, 0], y)
    history = model.fit(x, y, nb_epoch=16, batch_size=16, verbose=1, shuffle='batch', validation_split=0.2,
                        callbacks=[keras.callbacks.DeepLocalize(x, y, len(model.layers), 16, start)])
    raise AssertionError('the program goes on behind its training')
"""
UPDATES = 16 * 640 * 8 // 10 // 16
LISTED = {
    "digits": "none.zip",
    "repositories": {"own": {"url": "https://example.com/own/own", "commit": "0" * 40, "folders": ["/"], "holds": 2}},
    "programs": [
        {"name": "one_unit", "repository": "own", "faulty": "softmax.py", "corrected": "sigmoid.py", "fault": "softmax over one unit", "question": "4.3"},
        {"name": "broken", "repository": "own", "faulty": "broken.py", "corrected": None, "fault": "nothing", "question": "none"},
        {"name": "elsewhere", "repository": "own", "faulty": "gone.py", "corrected": None, "fault": "nothing", "question": "none", "cannot": "needs a moon"},
    ],
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """(folder of the recordings, what the command printed)."""
    folder = tmp_path_factory.mktemp("programs")
    cache = folder / "cache" / "own"
    cache.mkdir(parents=True)
    for activation in ("softmax", "sigmoid"):
        (cache / f"{activation}.py").write_text(textwrap.dedent(PROGRAM).replace("ACTIVATION", activation))
    (cache / "broken.py").write_text("import keras\nraise ValueError('no data here')\n")
    (folder / "list.json").write_text(json.dumps(LISTED))
    done = subprocess.run([ROOT / "bench" / "detection" / "programs" / "run", "--cache", folder / "cache", "--out", folder / "out", "--list",
                           folder / "list.json"], env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "out", done.stdout


def test_a_program_of_keras_1_trains_to_its_end_and_no_further(ran):
    notes = [json.loads(line) for line in (ran[0] / "one_unit" / "runs.jsonl").read_text().splitlines()]
    assert [(note["fault"], note["steps"]) for note in notes] == [("4.3", UPDATES), (None, UPDATES)]
    assert json.loads((ran[0] / "one_unit" / "failed.json").read_text()) == {}


def test_the_fault_is_told_and_its_correction_is_not(ran):
    assert "| own | `tocsin` | group `default` | 1 of 1 | 1 of 1 | 0 of 1 |" in ran[1]
    assert any("`collapse`" in line for line in ran[1].splitlines() if line.startswith("| one_unit |"))


def test_what_did_not_run_says_why(ran):
    assert "| broken | faulty | ValueError: no data here |" in ran[1]
    assert "| elsewhere | faulty | needs a moon |" in ran[1]
