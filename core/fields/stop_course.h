// A stop and what its ranks said, as the router's state holds it.
#pragma once

#include "core/fields/archive.h"
#include "core/fields/run_told.h"
#include "core/stop_course.h"

namespace tocsin::core {

template <typename A>
void fields(A& io, Of<A, StopCourse>& stop) {
  io.field("told", stop.told);
  io.field("ranks", stop.ranks);
  io.field("refused_revision", stop.refused_revision);
}

}  // namespace tocsin::core
