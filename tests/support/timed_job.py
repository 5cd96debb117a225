"""A training that only takes time: STEPS steps, each of so many milliseconds of waiting for data (WAIT) and of computing (COMPUTE),
after START seconds."""
import os
import time

import tocsin


def main():
    wait, compute = (float(os.environ[name]) / 1000 for name in ("WAIT", "COMPUTE"))
    hook = tocsin.watch(job="timed")
    time.sleep(float(os.environ.get("START", 0)))

    def batches():
        for _ in range(int(os.environ.get("STEPS", 70))):
            time.sleep(wait)
            yield None

    for _ in hook.batches(batches()):
        with hook.phase("forward"):
            time.sleep(compute)
        hook.step()
    hook.close()


main()
