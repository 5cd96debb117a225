// Options that several commands have alike.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace tocsin::app {

/// Which topics, and how what is found is written.
template <typename Options>
void add_place(CLI::App& command, Options& out) {
  command.add_option("--config.file,-c", out.config_file,
                     "configuration file (default: $TOCSIN_CONFIG, then ./tocsin.yaml)");
  command.add_option("--out", out.out, "kafka://host:9092 or a directory, instead of a file");
  command
      .add_option_function<std::string>(
          "--output,-o", [&out](const std::string& format) { out.json = format == "json"; },
          "text | json")
      ->check(CLI::IsMember({"text", "json"}));
}

}  // namespace tocsin::app
