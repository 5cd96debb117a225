// A run that goes on at this moment, for whoever looks at all of them.
#pragma once

#include "core/issue.h"
#include "core/labels.h"

namespace tocsin::core {

struct RunningRun {
  RunRef run;
  Labels labels;
};

}  // namespace tocsin::core
