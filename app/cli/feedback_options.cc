#include "app/cli/feedback_options.h"

#include <memory>
#include <string>
#include <vector>

#include "app/cli/feedback_command.h"
#include "app/cli/pin_command.h"
#include "app/cli/place_options.h"
#include "core/issue_feedback.h"

namespace tocsin::app {
namespace {

void add_issue(CLI::App& command, FeedbackOptions& options) {
  command
      .add_option("issue", options.id,
                  "Issue ID from `tocsin issues list`, event ID, or a unique prefix of either")
      ->type_name("ISSUE")
      ->required();
}

void add_author_and_place(CLI::App& command, FeedbackOptions& options) {
  command.add_option("--author", options.author, "Record this author (default: user@host)")
      ->type_name("NAME");
  command.add_flag("--dry-run", options.dry_run, "Show the issue without writing anything");
  add_place(command, options);
}

}  // namespace

void add_verdict(CLI::App& app, CommandRun& out) {
  auto* verdict = app.add_subcommand("verdict");
  const auto options = std::make_shared<FeedbackOptions>();
  add_issue(*verdict, *options);
  verdict
      ->add_option("verdict", options->verdict,
                   "useful: it was right to tell; noise: it was not; known: right, and no news")
      ->type_name("VERDICT")
      ->check(
          CLI::IsMember(std::vector<std::string>(core::kVerdicts.begin(), core::kVerdicts.end())));
  verdict->add_option("--note", options->text, "Record why")->type_name("TEXT");
  verdict->add_flag("--take-back", options->take_back, "Take the verdict back");
  add_author_and_place(*verdict, *options);
  verdict->callback([&out, options] {
    if (options->take_back != options->verdict.empty()) {
      throw CLI::ValidationError("VERDICT", "expected useful, noise or known, or --take-back");
    }
    out = [options] { return verdict_command(*options); };
  });
}

void add_note(CLI::App& app, CommandRun& out) {
  auto* note = app.add_subcommand("note");
  const auto options = std::make_shared<FeedbackOptions>();
  add_issue(*note, *options);
  note->add_option("text", options->text, "What you found: at most 4096 bytes")
      ->type_name("TEXT")
      ->required();
  add_author_and_place(*note, *options);
  note->callback([&out, options] { out = [options] { return note_command(*options); }; });
}

void add_pin(CLI::App& app, CommandRun& out) {
  auto* pin = app.add_subcommand("pin");
  const auto options = std::make_shared<PinOptions>();
  pin->add_option(
         "run", options->run,
         "Run ID or unique prefix, job (its run that goes on, else its newest), or run name "
         "with --job")
      ->type_name("RUN")
      ->required();
  pin->add_option("--job", options->job, "Match RUN only among runs of this job")->type_name("JOB");
  pin->add_flag("--take-back", options->take_back, "Take the pin away");
  pin->add_option("--author", options->author, "Record this author (default: user@host)")
      ->type_name("NAME");
  pin->add_flag("--dry-run", options->dry_run, "Show the run without writing anything");
  add_place(*pin, *options);
  pin->callback([&out, options] { out = [options] { return pin_command(*options); }; });
}

}  // namespace tocsin::app
