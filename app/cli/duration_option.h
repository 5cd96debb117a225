// An option whose value is a duration.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "core/time.h"

namespace tocsin::app {

/// `out`: a Duration, or an optional one.
template <typename Out>
CLI::Option* add_duration(CLI::App& command, const std::string& name, Out& out,
                          const std::string& help) {
  return command
      .add_option_function<std::string>(
          name,
          [&out, name](const std::string& text) {
            const auto given = core::parse_duration(text);
            if (!given) {
              throw CLI::ValidationError(name,
                                         "\"" + text + "\" is no duration, such as 30s or 5m");
            }
            out = *given;
          },
          help)
      ->type_name("DURATION");
}

}  // namespace tocsin::app
