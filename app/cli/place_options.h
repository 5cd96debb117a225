// Options that several commands have alike. Each stands here once: same name, same meaning everywhere.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

#include "app/cli/rule_choice.h"

namespace tocsin::app {

/// --config.file
inline CLI::Option* add_config_file(CLI::App& command, std::string& file) {
  return command
      .add_option("--config.file,-c", file,
                  "Read this configuration (default: $TOCSIN_CONFIG, then ./tocsin.yaml)")
      ->type_name("FILE");
}

/// --from: what is read. `--out` is its former name, hidden.
inline CLI::Option* add_from(CLI::App& command, std::string& place) {
  auto* from = command
                   .add_option("--from", place,
                               "Read kafka://HOST:PORT or a journal directory instead of the "
                               "configuration's transport")
                   ->type_name("PLACE");
  command.add_option("--out", place, "")->group("");
  return from;
}

/// --output json, the one flag for machines. `--format` and `--json` are former names, hidden.
inline void add_output(CLI::App& command, const std::function<void(const std::string&)>& use,
                       const std::vector<std::string>& formats = {"text", "json"}) {
  const auto one_of = [&](CLI::Option* option) { option->check(CLI::IsMember(formats)); };
  auto* output = command.add_option_function<std::string>(
      "--output,-o", use, "Write in this format (default: " + formats.front() + ")");
  one_of(output->type_name("FORMAT"));
  one_of(command.add_option_function<std::string>("--format", use, "")->group(""));
  command
      .add_flag_function(
          "--json", [use](std::int64_t given) { use(given > 0 ? "json" : "text"); }, "")
      ->group("");
}
inline void add_output(CLI::App& command, bool& json) {
  add_output(command, [&json](const std::string& format) { json = format == "json"; });
}

/// Which topics, and how what is found is written.
template <typename Options>
void add_place(CLI::App& command, Options& out) {
  add_config_file(command, out.config_file);
  add_from(command, out.out);
  add_output(command, out.json);
}

/// Which run.
template <typename Options>
CLI::Option* add_run_name(CLI::App& command, Options& out) {
  command.add_option("--job", out.job, "Match only runs of this job")->type_name("JOB");
  return command
      .add_option(
          "run", out.run,
          "Run ID or unique prefix, run name, or job name if the job has exactly one active "
          "run")
      ->type_name("RUN");
}

/// By which rules a recording is judged.
inline void add_rule_choice(CLI::App& command, RuleChoice& out) {
  command
      .add_option("--rules", out.rules,
                  "Judge by these rules and groups (a,b) or by a YAML file with `rules:` (default: "
                  "the configuration's rules, else the group default)")
      ->type_name("RULES");
  command
      .add_option("--preset", out.preset,
                  "Take parameters from this preset for rules given by name")
      ->type_name("PRESET")
      ->check(CLI::IsMember({"tocsin", "original"}));
}

/// Which run of a recording, and whether values of a parameter are tried.
template <typename Options>
void add_run_choice(CLI::App& command, Options& out) {
  command
      .add_option("--run", out.run,
                  "Judge only this run: run ID or unique prefix, or run name with --job")
      ->type_name("RUN");
  command.add_option("--job", out.job, "Match --run only among runs of this job")->type_name("JOB");
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
          "Show when each value would have fired: [RULE.]PARAMETER=LOW..HIGH[:STEPS] or =A,B,C")
      ->type_name("VALUES")
      ->allow_extra_args(false);
  add_output(command, out.json);
}

}  // namespace tocsin::app
