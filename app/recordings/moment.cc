#include "app/recordings/moment.h"

#include "app/recordings/recording.h"

namespace tocsin::app {

core::Result<Moment> parse_moment(const std::string& text, core::WallTime present) {
  const auto bound = parse_bound("--at", text, present);
  if (!bound || bound->offset) {
    return core::invalid_argument(
        "--at " + text +
        ": expected a time such as 2026-11-22T14:00:00Z or 2026-11-22, or a span "
        "back from now such as 2h");
  }
  if (bound->time && *bound->time > present) {
    return core::invalid_argument("--at " + core::to_rfc3339(*bound->time) + " is yet to come");
  }
  return Moment{bound->time};
}

}  // namespace tocsin::app
