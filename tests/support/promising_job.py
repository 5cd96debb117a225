"""A training that promises to be heard of within a second, keeps quiet until somebody opens the file GO, and goes on."""
import os
import time

import tocsin

hook = tocsin.watch(job="promising")
hook.log(loss=1.0)
hook.step()
hook.report_progress(expect_next_in=float(os.environ["WITHIN"]))
while not os.path.exists(os.environ["GO"]):
    time.sleep(0.05)
hook.report_progress()
hook.log(loss=1.0)
hook.step()
hook.close()
