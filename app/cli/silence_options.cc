// The commands of `tocsin silence`, on the command line.
#include <memory>
#include <string>

#include "app/cli/duration_option.h"
#include "app/cli/place_options.h"
#include "app/cli/silence_commands.h"
#include "app/cli/steering_options.h"

namespace tocsin::app {
namespace {

using Options = std::shared_ptr<SilenceOptions>;

void add_matchers(CLI::App& command, SilenceTerms& terms) {
  command
      .add_option("matchers", terms.matchers,
                  "Label matcher such as rule=\"overfit\", with =, !=, =~ or !~; an issue must "
                  "match all (docs/routing.md)")
      ->type_name("MATCHER");
  command
      .add_option("--or", terms.or_sets,
                  "Match issues that meet this set of matchers too, such as '{job=\"a\", "
                  "rule=\"b\"}'; repeatable")
      ->type_name("MATCHERS")
      ->allow_extra_args(false);
  command
      .add_option("--run", terms.run,
                  "Match this run: ID or unique prefix, job, or name with --job")
      ->type_name("RUN");
  command.add_option("--job", terms.job, "Match all runs of this job")->type_name("JOB");
}

void add_recurrence(CLI::App& command, SilenceTerms& terms) {
  command
      .add_option("--time-interval", terms.time_interval,
                  "Mute only while this interval of the configuration holds")
      ->type_name("NAME");
  command
      .add_option("--times", terms.times,
                  "Mute only in this part of each day, such as 20:00-24:00; repeatable")
      ->type_name("START-END")
      ->allow_extra_args(false);
  command
      .add_option("--weekdays", terms.weekdays,
                  "Mute only on these days, such as monday:friday; repeatable")
      ->type_name("DAYS")
      ->allow_extra_args(false);
  command
      .add_option("--location", terms.location,
                  "Read --times and --weekdays in this time zone, such as Europe/Berlin (default: "
                  "UTC)")
      ->type_name("ZONE");
}

// What a silence is beside whom it mutes.
void add_terms(CLI::App& command, SilenceTerms& terms, const std::string& default_end) {
  add_duration(command, "--for", terms.lasts, "Mute for this long" + default_end);
  command.add_option("--until", terms.until, "Mute until this time, such as 2026-01-02T03:04:05Z")
      ->type_name("TIME");
  add_duration(command, "--in", terms.begins, "Start after this delay (default: now)");
  command.add_option("--author", terms.author, "Record this author (default: user@host)")
      ->type_name("NAME");
  command
      .add_option("--actions", terms.actions,
                  "Mute only notifications or only stops (default: both)")
      ->type_name("ACTIONS")
      ->check(CLI::IsMember({"notify", "stop_training", "all"}));
  command.add_option("--annotation", terms.annotations, "Record this text by name; repeatable")
      ->type_name("NAME=TEXT")
      ->allow_extra_args(false);
  add_recurrence(command, terms);
  command.add_flag("--until-resolved", terms.until_resolved,
                   "End the silence once everything it matched is over (at most 7d unless --for)");
  add_duration(
      command, "--quiet-for", terms.quiet_for,
      "Wait this long after the last issue before --until-resolved ends it (default: 10m)");
  add_duration(command, "--auto-expire-unmatched", terms.auto_expire_unmatched,
               "End the silence once it has matched nothing for this long");
  command
      .add_option("--announce-on-unmute", terms.announce,
                  "Send a reminder of what still fires when the silence ends (default: never)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"never", "reminder"}));
}

void add_force(CLI::App& command, SilenceOptions& options) {
  command.add_flag("--force", options.force,
                   "Allow more than 90 days, or a set of nothing but negative matchers");
}

void add_id(CLI::App& command, SilenceOptions& options) {
  command.add_option("id", options.id, "Silence ID from `tocsin silence list`, or a unique prefix")
      ->type_name("ID")
      ->required();
}

template <typename Run>
void finish(CLI::App& command, CommandRun& out, const Options& options, Run run) {
  add_place(command, *options);
  command.callback([&out, options, run] { out = [options, run] { return run(*options); }; });
}

void add_add(CLI::App& silence, CommandRun& out, const Options& options) {
  auto* add = silence.add_subcommand("add");
  add_matchers(*add, options->terms);
  add->add_option("--comment", options->terms.comment, "Record the reason")
      ->type_name("TEXT")
      ->required();
  add_terms(*add, options->terms, " (default: 1h; 7d with --until-resolved; 30d if it recurs)");
  add_force(*add, *options);
  add->add_flag("--dry-run", options->dry_run,
                "Show the matching open issues without writing the silence");
  finish(*add, out, options, silence_add);
}

void add_update(CLI::App& silence, CommandRun& out, const Options& options) {
  auto* update = silence.add_subcommand("update");
  add_id(*update, *options);
  add_matchers(*update, options->terms);
  update->add_option("--comment", options->terms.comment, "Record another reason")
      ->type_name("TEXT");
  add_terms(*update, options->terms, " from now");
  update
      ->add_option("--version", options->version,
                   "Check that the silence is still at this version (silence list --output json)")
      ->type_name("NUMBER");
  add_force(*update, *options);
  update->add_flag("--dry-run", options->dry_run, "Show the change without writing it");
  finish(*update, out, options, silence_update);
}

void add_preview(CLI::App& silence, CommandRun& out, const Options& options) {
  auto* preview = silence.add_subcommand("preview");
  add_matchers(*preview, options->terms);
  finish(*preview, out, options, silence_preview);
}

void add_lists(CLI::App& silence, CommandRun& out, const Options& options) {
  const auto add_all = [&](CLI::App& command) {
    command.add_flag("--all", options->all,
                     "Show silences that expired within the last five days too");
  };
  auto* list = silence.add_subcommand("list");
  add_all(*list);
  finish(*list, out, options, silence_list);
  auto* query = silence.add_subcommand("query");
  query
      ->add_option("matchers", options->terms.matchers,
                   "Matcher on what the silences name, such as job=\"digits\"")
      ->type_name("MATCHER");
  add_all(*query);
  query->add_flag("--quiet,-q", options->ids_only, "Print IDs only, one a line");
  finish(*query, out, options, silence_query);
}

void add_files(CLI::App& silence, CommandRun& out, const Options& options) {
  auto* exported = silence.add_subcommand("export");
  exported->add_flag("--all", options->all,
                     "Write silences that expired within the last five days too");
  finish(*exported, out, options, silence_export);
  auto* imported = silence.add_subcommand("import");
  imported
      ->add_option("file", options->file,
                   "Read the silences that `tocsin silence export` wrote from this file; - reads "
                   "standard input")
      ->type_name("FILE")
      ->required();
  add_force(*imported, *options);
  finish(*imported, out, options, silence_import);
}

}  // namespace

void add_silence(CLI::App& app, CommandRun& out) {
  auto* silence = app.add_subcommand("silence");
  silence->require_subcommand(1);
  const auto options = std::make_shared<SilenceOptions>();
  add_add(*silence, out, options);
  add_update(*silence, out, options);
  add_preview(*silence, out, options);
  add_lists(*silence, out, options);
  auto* expire = silence->add_subcommand("expire");
  add_id(*expire, *options);
  finish(*expire, out, options, silence_expire);
  add_files(*silence, out, options);
}

}  // namespace tocsin::app
