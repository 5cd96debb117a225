#include "app/cli/view_options.h"

#include <memory>
#include <string>

#include "app/cli/groups_command.h"
#include "app/cli/place_options.h"
#include "app/cli/reproduce_command.h"
#include "app/cli/resolve_command.h"
#include "app/cli/view_commands.h"

namespace tocsin::app {
namespace {

void add_moment(CLI::App& command, std::string& at) {
  command
      .add_option(
          "--at", at,
          "Show the state at this time: 2026-11-22T14:00:00Z, 2026-11-22, or 2h (two hours ago)")
      ->type_name("TIME");
}

template <typename Options>
void add_filters(CLI::App& command, Options& out) {
  command.add_option("--job", out.job, "Show only this job")->type_name("JOB");
  command.add_option("--rule", out.rule, "Show only this rule")->type_name("RULE");
}

constexpr const char* kIssueId =
    "Issue ID from `tocsin issues list`, event ID, or a unique prefix of either";

void add_issues_list(CLI::App& issues, CommandRun& out) {
  auto* list = issues.add_subcommand("list");
  const auto options = std::make_shared<IssueListOptions>();
  add_place(*list, *options);
  add_filters(*list, *options);
  add_moment(*list, options->at);
  list->add_flag("--all", options->all, "Show resolved issues too");
  list->callback([&out, options] { out = [options] { return issues_list(*options); }; });
}

void add_issues_show(CLI::App& issues, CommandRun& out) {
  auto* show = issues.add_subcommand("show");
  const auto options = std::make_shared<IssueShowOptions>();
  show->add_option("id", options->id, kIssueId)->type_name("ID")->required();
  add_place(*show, *options);
  add_moment(*show, options->at);
  show->callback([&out, options] { out = [options] { return issues_show(*options); }; });
}

void add_issues_reproduce(CLI::App& issues, CommandRun& out) {
  auto* reproduce = issues.add_subcommand("reproduce");
  const auto again = std::make_shared<ReproduceOptions>();
  reproduce->add_option("id", again->id, kIssueId)->type_name("ID")->required();
  add_config_file(*reproduce, again->config_file);
  add_output(*reproduce, again->json);
  reproduce
      ->add_option("--from", again->from,
                   "Read kafka://HOST:PORT or a directory instead of the configuration's "
                   "transport; a directory without the issue gives only telemetry")
      ->type_name("PLACE");
  reproduce->add_option("--out", again->out, "")->group("");
  reproduce->add_option("--save", again->save, "Copy the judged telemetry into this new directory")
      ->type_name("DIRECTORY");
  reproduce->callback([&out, again] { out = [again] { return reproduce_command(*again); }; });
}

void add_issues_resolve(CLI::App& issues, CommandRun& out) {
  auto* resolve = issues.add_subcommand("resolve");
  const auto options = std::make_shared<ResolveOptions>();
  resolve->add_option("id", options->id, kIssueId)->type_name("ID")->required();
  resolve->add_option("--note", options->note, "Record why it is over; messages repeat it")
      ->type_name("TEXT")
      ->required();
  resolve->add_option("--author", options->author, "Record this author (default: user@host)")
      ->type_name("NAME");
  resolve->add_flag("--dry-run", options->dry_run, "Show the issue without writing anything");
  add_place(*resolve, *options);
  resolve->callback([&out, options] { out = [options] { return issues_resolve(*options); }; });
}

}  // namespace

void add_status(CLI::App& app, CommandRun& out) {
  auto* status = app.add_subcommand("status");
  const auto options = std::make_shared<StatusOptions>();
  auto* run = add_run_name(*status, *options);
  status->get_option("--job")->needs(run);
  add_place(*status, *options);
  add_moment(*status, options->at);
  status->add_flag("--all", options->all,
                   "Show all lines of each section, not only the first ones");
  status->callback([&out, options] { out = [options] { return status_command(*options); }; });
}

void add_issues(CLI::App& app, CommandRun& out) {
  auto* issues = app.add_subcommand("issues");
  issues->require_subcommand(1);
  add_issues_list(*issues, out);
  add_issues_show(*issues, out);
  add_issues_reproduce(*issues, out);
  add_issues_resolve(*issues, out);
}

void add_groups(CLI::App& app, CommandRun& out) {
  auto* groups = app.add_subcommand("groups");
  groups->require_subcommand(1);
  auto* list = groups->add_subcommand("list");
  const auto listed = std::make_shared<GroupsOptions>();
  list->add_option("--route", listed->route,
                   "Show only groups of this route: ID from `tocsin routes tree`")
      ->type_name("ROUTE");
  list->add_option("--integration", listed->integration,
                   "Show only groups that told this integration or receiver")
      ->type_name("NAME");
  list->add_option("--issue", listed->issue, "Show only groups with this issue: ID or prefix")
      ->type_name("ID");
  add_place(*list, *listed);
  list->callback([&out, listed] { out = [listed] { return groups_list(*listed); }; });
  auto* show = groups->add_subcommand("show");
  const auto shown = std::make_shared<GroupsOptions>();
  show->add_option("hash", shown->hash, "Hash of the group from `tocsin groups list`, or a prefix")
      ->type_name("HASH")
      ->required();
  add_place(*show, *shown);
  show->callback([&out, shown] { out = [shown] { return groups_show(*shown); }; });
}

void add_tail(CLI::App& app, CommandRun& out) {
  auto* tail = app.add_subcommand("tail");
  const auto options = std::make_shared<TailOptions>();
  add_place(*tail, *options);
  add_filters(*tail, *options);
  tail->add_flag("--all", options->all, "Show existing records first");
  tail->callback([&out, options] { out = [options] { return tail_command(*options); }; });
}

}  // namespace tocsin::app
