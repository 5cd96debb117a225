#include "app/cli/recording_options.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/golden.h"
#include "app/cli/place_options.h"
#include "app/cli/replay_command.h"
#include "app/cli/report_command.h"

namespace tocsin::app {
namespace {

// `--from 2h` was the beginning of the span before `--since` was.
bool names_a_place(const std::string& text) {
  std::error_code error;
  return text.starts_with("kafka://") || text.find('/') != std::string::npos ||
         std::filesystem::is_directory(text, error);
}

void add_span(CLI::App& command, ReplayOptions& out) {
  command
      .add_option_function<std::vector<std::string>>(
          "--from",
          [&out](const std::vector<std::string>& given) {
            for (const std::string& one : given) {
              if (names_a_place(one)) {
                out.out = one;
              } else {
                out.since = one;
                out.since_word = "--from";
              }
            }
          },
          "Read kafka://HOST:PORT or a journal directory instead of the configuration's transport")
      ->type_name("PLACE")
      ->allow_extra_args(false);
  command.add_option("--out", out.out, "")->group("");
  command
      .add_option("--since", out.since,
                  "Start at this time: 2026-11-22T14:00:00Z, 2026-11-22, 2h (two hours ago) or "
                  "@OFFSET (default: the first record)")
      ->type_name("TIME");
  command.add_option("--until", out.until, "End at this time (default: the last record)")
      ->type_name("TIME");
  command
      .add_option_function<std::string>(
          "--to",
          [&out](const std::string& given) {
            out.until = given;
            out.until_word = "--to";
          },
          "")
      ->group("");
  command
      .add_option(
          "--warm-up", out.warm_up,
          "Read this much before the start to fill the rules' windows; show no issues from it")
      ->type_name("DURATION");
  command
      .add_option("--partition", out.partition,
                  "Read only this Kafka partition; required with @OFFSET")
      ->type_name("NUMBER");
}

}  // namespace

void add_replay(CLI::App& app, CommandRun& out) {
  auto options = std::make_shared<ReplayOptions>();
  auto* command = app.add_subcommand("replay");
  add_config_file(*command, options->rules.config_file);
  add_rule_choice(*command, options->rules);
  add_span(*command, *options);
  add_run_choice(*command, *options);
  command->callback([&out, options] { out = [options] { return replay_command(*options); }; });
}

void add_report(CLI::App& app, CommandRun& out) {
  auto options = std::make_shared<ReportOptions>();
  auto* command = app.add_subcommand("report");
  add_run_name(*command, *options)
      ->description("Run ID or unique prefix, run name, or job name (default: the only run)");
  add_place(*command, *options);
  auto* from = command->get_option("--from");
  command
      ->add_option("--html", options->html,
                   "Write a self-contained HTML page to this file; - is stdout")
      ->type_name("FILE");
  command
      ->add_option(
          "--md", options->markdown,
          "Write its beginning as Markdown, for a merge request, to this file; - is stdout")
      ->type_name("FILE");
  command
      ->add_option("--bundle", options->bundle,
                   "Write the page, a notebook, and a JSON file for each rule into this folder")
      ->type_name("DIR");
  auto* judge =
      command
          ->add_flag("--judge", options->judge,
                     "Judge the directory of --from again instead of reading its recorded issues")
          ->needs(from);
  command
      ->add_option("--at", options->at,
                   "Write the report as of this time: 2026-11-22T14:00:00Z, 2026-11-22, or 2h (two "
                   "hours ago)")
      ->type_name("TIME")
      ->excludes(judge);
  add_rule_choice(*command, options->rules);
  for (const char* name : {"--rules", "--preset"}) command->get_option(name)->needs(from);
  command->callback([&out, options] {
    out = [options] {
      options->rules.config_file = options->config_file;
      options->judge =
          options->judge || !options->rules.rules.empty() || !options->rules.preset.empty();
      return report_command(*options);
    };
  });
}

void add_test(CLI::App& app, CommandRun& out) {
  auto options = std::make_shared<GoldenOptions>();
  auto* command = app.add_subcommand("test");
  command->add_option("files", options->files, "Golden files (docs/replay.md)")
      ->type_name("FILE")
      ->required();
  command->add_flag("--update", options->update,
                    "Write the found issues into the files as the expected ones");
  add_output(*command, options->json);
  command->callback([&out, options] { out = [options] { return golden_command(*options); }; });
}

}  // namespace tocsin::app
