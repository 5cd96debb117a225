// Door of the training hook for the program: what it checks of a configuration on the hook's behalf, how it finds
// where a hook would write, and what a worker below `tocsin run` reports. A training process uses tocsin_client.h.
#pragma once

#include "collectors/hook/capture/capture.h"
#include "collectors/hook/client/run_report.h"
#include "collectors/hook/client/settings.h"
#include "collectors/hook/client/shared_sections.h"
#include "collectors/hook/publish/judge_watch.h"
