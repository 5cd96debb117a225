// What an integration does, by its type: it tells people, commands a run, or writes numbers.
#pragma once

#include <string_view>

namespace tocsin::core {

/// A command to a run: it is never sent again, and nobody is told by it.
constexpr bool commands_a_run(std::string_view type) {
  return type == "stop_training" || type == "profile_training" || type == "raise_capture" ||
         type == "adjust";
}

constexpr bool tells_people(std::string_view type) {
  return !commands_a_run(type) && type != "publish_metric";
}

}  // namespace tocsin::core
