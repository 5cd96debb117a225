#include "app/recording_options.h"

#include <memory>

#include "app/place_options.h"
#include "app/replay/golden.h"
#include "app/replay/replay_command.h"
#include "app/report/report_command.h"

namespace tocsin::app {

void add_replay(CLI::App& app, Invocation& out) {
  auto options = std::make_shared<ReplayOptions>();
  auto* command = app.add_subcommand(
      "replay", "judge a past span again, with other rules, beside what was told then");
  command->add_option("--config.file,-c", options->rules.config_file,
                      "configuration file (default: $TOCSIN_CONFIG, then ./tocsin.yaml)");
  command->add_option("--out", options->out,
                      "kafka://host:9092 or a directory, instead of the file's transport");
  add_rule_choice(*command, options->rules);
  command->add_option("--from", options->from,
                      "2026-11-22T14:00:00Z, 2026-11-22, 2h (so long ago) or @OFFSET; default: the "
                      "beginning");
  command->add_option("--to", options->to, "the same; default: the end");
  command->add_option("--warm-up", options->warm_up,
                      "duration: read so much before --from, so that windows are full, and show "
                      "nothing of it");
  command->add_option("--partition", options->partition, "Kafka: only this one; offsets need it");
  add_run_choice(*command, *options);
  command->footer(
      "Nothing is written, committed or told. The exit code is 0 when the issues are those that "
      "were told, 1 when\nthey differ.\n\n"
      "Examples:\n  tocsin replay --rules new.yaml --from 2026-11-22T14:00:00Z --to "
      "2026-11-22T15:00:00Z\n  tocsin replay --rules vanishing_gradient --from 24h --sweep "
      "threshold=1e-9..1e-5");
  command->callback([&out, options] { out.run = [options] { return replay_command(*options); }; });
}

void add_report(CLI::App& app, Invocation& out) {
  auto options = std::make_shared<ReportOptions>();
  auto* command =
      app.add_subcommand("report", "what rules found of a run, and what they sum up, as one page");
  command->add_option("run", options->run,
                      "uid of the run or its beginning, its job, or the run's own name "
                      "(default: the only one)");
  command->add_option("--job", options->job, "job of the run");
  add_place(*command, *options);
  command->add_option("--html", options->html,
                      "write a page into this file, which needs nothing else; -: to stdout");
  auto* from = command->add_option("--from", options->from,
                                   "judge this journal directory now, instead of what was told");
  command
      ->add_option("--at", options->at,
                   "the page as it was then: 2026-11-22T14:00:00Z, 2026-11-22, or so long ago: 2h")
      ->excludes(from);
  add_rule_choice(*command, options->rules);
  for (const char* name : {"--rules", "--preset"}) command->get_option(name)->needs(from);
  command->footer(
      "Without --html the report is written as text. Time, machines and bottlenecks are told by "
      "the "
      "rule\nprofiler_report, an XGBoost training by create_xgboost_report: name them in the "
      "configuration.\n\n"
      "Examples:\n  tocsin report digits --html digits.html\n  tocsin report --from ./run1 --html "
      "run1.html");
  command->callback([&out, options] {
    out.run = [options] {
      options->rules.config_file = options->config_file;
      return report_command(*options);
    };
  });
}

void add_test(CLI::App& app, Invocation& out) {
  auto options = std::make_shared<GoldenOptions>();
  auto* command = app.add_subcommand(
      "test", "rules over recorded slices: exactly the issues that each file expects");
  command->add_option("files", options->files, "golden files (docs/replay.md)")->required();
  command->add_flag("--update", options->update, "write what is found as what is expected");
  command->footer("Example:\n  tocsin test golden/*.yaml");
  command->callback([&out, options] { out.run = [options] { return golden_command(*options); }; });
}

}  // namespace tocsin::app
