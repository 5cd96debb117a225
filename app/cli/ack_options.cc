#include "app/cli/ack_options.h"

#include <memory>
#include <string>

#include "app/cli/ack_command.h"
#include "app/cli/place_options.h"
#include "core/time.h"

namespace tocsin::app {

void add_ack(CLI::App& app, CommandRun& out) {
  auto* ack = app.add_subcommand("ack");
  const auto options = std::make_shared<AckOptions>();
  ack->add_option("what", options->what,
                  "Acknowledge this issue (ID or unique prefix), all open issues of this run, or "
                  "those of a message (ntf_…) or group (hash)")
      ->type_name("WHAT")
      ->required();
  ack->add_option("--note", options->note, "Record what you found or do; messages repeat it")
      ->type_name("TEXT");
  auto* lasts = ack->add_option_function<std::string>(
      "--for",
      [options](const std::string& text) {
        const auto given = core::parse_duration(text);
        if (!given || *given <= core::Duration::zero()) {
          throw CLI::ValidationError("--for", "\"" + text + "\" is no duration, such as 30m or 8h");
        }
        options->lasts = *given;
      },
      "End it after this long (default: when the issue ends, at most router.ack_timeout)");
  lasts->type_name("DURATION");
  ack->add_option("--until", options->until, "End it at this time, such as 2026-11-22T18:00:00Z")
      ->type_name("TIME")
      ->excludes(lasts);
  ack->add_option("--job", options->job, "Match only runs of this job")->type_name("JOB");
  ack->add_option("--author", options->author, "Record this author (default: user@host)")
      ->type_name("NAME");
  ack->add_flag("--take-back", options->take_back,
                "Take the acknowledgement back: repeats and escalation go on");
  ack->add_flag("--dry-run", options->dry_run, "Show the open issues without writing anything");
  add_place(*ack, *options);
  ack->callback([&out, options] {
    if (!options->take_back && options->note.empty()) {
      throw CLI::ValidationError("--note", "say what you found or do: others read it");
    }
    out = [options] { return ack_command(*options); };
  });
}

}  // namespace tocsin::app
