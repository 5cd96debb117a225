#include "app/cli/view_options.h"

#include <memory>
#include <string>

#include "app/cli/place_options.h"
#include "app/cli/reproduce_command.h"

namespace tocsin::app {
namespace {

void add_moment(CLI::App& command, std::string& at) {
  command
      .add_option(
          "--at", at,
          "Show the state at this time: 2026-11-22T14:00:00Z, 2026-11-22, or 2h (two hours ago)")
      ->type_name("TIME");
}

void add_filters(CLI::App& command, ViewOptions& out) {
  command.add_option("--job", out.job, "Show only this job")->type_name("JOB");
  command.add_option("--rule", out.rule, "Show only this rule")->type_name("RULE");
}

void add_issues(CLI::App& app, Invocation& out) {
  auto* issues = app.add_subcommand("issues");
  issues->require_subcommand(1);
  auto* list = issues->add_subcommand("list");
  add_place(*list, out.view);
  add_filters(*list, out.view);
  add_moment(*list, out.view.at);
  list->add_flag("--all", out.view.all, "Show resolved issues too");
  list->callback([&out] { out.run = [&out] { return issues_list(out.view); }; });

  constexpr const char* kId =
      "Issue ID from `tocsin issues list`, event ID, or a unique prefix of either";
  auto* show = issues->add_subcommand("show");
  show->add_option("id", out.view.id, kId)->type_name("ID")->required();
  add_place(*show, out.view);
  add_moment(*show, out.view.at);
  show->callback([&out] { out.run = [&out] { return issues_show(out.view); }; });

  auto* reproduce = issues->add_subcommand("reproduce");
  const auto again = std::make_shared<ReproduceOptions>();
  reproduce->add_option("id", again->id, kId)->type_name("ID")->required();
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
  reproduce->callback([&out, again] { out.run = [again] { return reproduce_command(*again); }; });
}

}  // namespace

void add_views(CLI::App& app, Invocation& out) {
  auto* status = app.add_subcommand("status");
  auto* run = add_run_name(*status, out.view);
  status->get_option("--job")->needs(run);
  add_place(*status, out.view);
  add_moment(*status, out.view.at);
  status->add_flag("--all", out.view.all,
                   "Show all lines of each section, not only the first ones");
  status->callback([&out] { out.run = [&out] { return status_command(out.view); }; });
  add_issues(app, out);
  auto* tail = app.add_subcommand("tail");
  add_place(*tail, out.view);
  add_filters(*tail, out.view);
  tail->add_flag("--all", out.view.all, "Show existing records first");
  tail->callback([&out] { out.run = [&out] { return tail_command(out.view); }; });
}

}  // namespace tocsin::app
