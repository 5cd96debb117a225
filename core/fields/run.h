// Which run a message is about.
#pragma once

#include "core/fields/archive.h"
#include "core/issue.h"

namespace tocsin::core {

template <typename A>
void fields(A& io, Of<A, RunRef>& run) {
  if constexpr (A::kReading) run.attempt = 0;  // not said: nothing may be stopped for it
  io.field("uid", run.uid, "UUID of the run", How::null_if_empty);
  io.field("attempt", run.attempt, "number of this launch of the run's processes; grows",
           How::null_if_empty);
  io.field("job", run.job, "name of what is trained");
  io.field("platform", run.platform, "local, slurm, k8s-job, …");
  io.field("ref", run.ref, "the platform's own identity of it", How::record);
}

}  // namespace tocsin::core
