// Options that several commands have alike.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "app/replay/rule_choice.h"

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

/// By which rules a recording is judged.
inline void add_rule_choice(CLI::App& command, RuleChoice& out) {
  command.add_option("--rules", out.rules,
                     "rules and groups by name (a,b), or a YAML file with `rules:`; default: those "
                     "of the configuration, else the group default");
  command.add_option("--preset", out.preset, "tocsin | original, for rules by name")
      ->check(CLI::IsMember({"tocsin", "original"}));
}

/// Which run of a recording, and whether values of a parameter are tried.
template <typename Options>
void add_run_choice(CLI::App& command, Options& out) {
  command.add_option("--run", out.run,
                     "only this run: its uid or the beginning of it, or its name with --job");
  command.add_option("--job", out.job, "job of the run that --run names");
  command
      .add_option_function<std::vector<std::string>>(
          "--sweep",
          [&out](const std::vector<std::string>& given) {
            if (given.size() > 1) {
              throw CLI::ValidationError(
                  "--sweep", "one parameter is swept at a time, given were " +
                                 std::to_string(given.size()) + ": run the command once for each");
            }
            out.sweep = given.front();
          },
          "[RULE.]PARAMETER=LOW..HIGH[:STEPS] or =A,B,C: instead of verdicts a table of "
          "when each value would have fired")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--format", [&out](const std::string& format) { out.json = format == "json"; },
          "text | json")
      ->check(CLI::IsMember({"text", "json"}));
}

}  // namespace tocsin::app
