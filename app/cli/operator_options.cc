#include "app/cli/operator_options.h"

#include <memory>
#include <string>
#include <vector>

#include "app/cli/dlq_command.h"
#include "app/cli/duration_option.h"
#include "app/cli/endpoint_command.h"
#include "app/cli/history_command.h"
#include "app/cli/place_options.h"
#include "app/cli/routes_command.h"
#include "app/cli/simulate_command.h"

namespace tocsin::app {
namespace {

using DlqCommand = int (*)(const DlqOptions&);

CLI::App* add_dlq_command(CLI::App& dlq, const std::string& name,
                          const std::shared_ptr<DlqOptions>& options, DlqCommand work,
                          CommandRun& out) {
  auto* command = dlq.add_subcommand(name);
  add_place(*command, *options);
  command->callback([&out, options, work] { out = [options, work] { return work(*options); }; });
  return command;
}

constexpr const char* kLetterId =
    "Notification ID or unique prefix, or record ID such as telemetry/0@1234, from `tocsin dlq "
    "list`";
constexpr const char* kOfIntegration = "Match only this integration or receiver";

// Those that are named, or all of an integration.
void add_letters(CLI::App& command, DlqOptions& out) {
  command.add_option("id", out.ids, kLetterId)->type_name("ID");
  command.add_option("--integration", out.integration, kOfIntegration)->type_name("NAME");
  command.add_option("--note", out.note, "Record the reason")->type_name("TEXT");
  command.add_flag("--dry-run", out.dry_run, "Show what would happen, and change nothing");
}

void need_letters(const DlqOptions& options) {
  if (options.ids.empty() && options.integration.empty()) {
    throw CLI::RequiredError("ID or --integration");
  }
}

void add_dlq_replay(CLI::App& dlq, CommandRun& out) {
  const auto options = std::make_shared<DlqOptions>();
  auto* replay = add_dlq_command(dlq, "replay", options, dlq_replay, out);
  add_letters(*replay, *options);
  replay->add_flag("--as-was", options->as_was,
                   "Send the message as it was decided, not as its issues stand now");
  replay->add_flag("--force", options->force, "Send the message even if its issues are over");
  replay->callback([&out, options] {
    need_letters(*options);
    out = [options] { return dlq_replay(*options); };
  });
}

void add_dlq_discard(CLI::App& dlq, CommandRun& out) {
  const auto options = std::make_shared<DlqOptions>();
  auto* discard = add_dlq_command(dlq, "discard", options, dlq_discard, out);
  add_letters(*discard, *options);
  discard->callback([&out, options] {
    need_letters(*options);
    out = [options] { return dlq_discard(*options); };
  });
}

CLI::App* add_order(CLI::App& parent, const std::string& name, actions::EndpointDeed deed,
                    const std::shared_ptr<EndpointOptions>& options, CommandRun& out) {
  auto* command = parent.add_subcommand(name);
  command->add_option("integration", options->integration, "Integration ID: RECEIVER/TYPE")
      ->type_name("INTEGRATION")
      ->required();
  add_place(*command, *options);
  command->callback(
      [&out, options, deed] { out = [options, deed] { return endpoint_order(*options, deed); }; });
  return command;
}

}  // namespace

void add_history(CLI::App& app, CommandRun& out) {
  auto* history = app.add_subcommand("history");
  const auto options = std::make_shared<HistoryOptions>();
  history
      ->add_option("--issue", options->issue,
                   "Show only notifications of this issue: ID from `tocsin issues list`, event ID, "
                   "or a prefix")
      ->type_name("ID");
  history->add_option("--integration", options->integration, kOfIntegration)->type_name("NAME");
  history
      ->add_option("--state", options->state,
                   "Show only notifications in this state; pending has not ended")
      ->type_name("STATE")
      ->check(CLI::IsMember({"pending", "delivered", "delivered_via_digest", "sent_unconfirmed",
                             "superseded", "expired", "dead", "cancelled"}));
  history
      ->add_option("--since", options->since,
                   "Show only what happened since 2026-11-22T14:00:00Z, 2026-11-22, or 2h (two "
                   "hours ago)")
      ->type_name("TIME");
  auto* run = history
                  ->add_option("--run", options->run,
                               "Show only notifications about this run: ID or unique prefix, job, "
                               "or name with --job")
                  ->type_name("RUN");
  history->add_option("--job", options->job, "Match --run only among runs of this job")
      ->type_name("JOB")
      ->needs(run);
  history->add_flag("--all", options->all, "Show all notifications, not only the newest 40");
  history->add_flag("--audit", options->audit,
                    "Check that each notification has exactly one final state or is pending");
  add_place(*history, *options);
  history->callback([&out, options] { out = [options] { return history_command(*options); }; });
}

void add_dlq(CLI::App& app, CommandRun& out) {
  auto* dlq = app.add_subcommand("dlq");
  dlq->require_subcommand(1);
  const auto listed = std::make_shared<DlqOptions>();
  auto* list = add_dlq_command(*dlq, "list", listed, dlq_list, out);
  list->add_option("--integration", listed->integration, kOfIntegration)->type_name("NAME");
  list->add_flag("--all", listed->all, "Show replayed and discarded dead letters too");
  const auto shown = std::make_shared<DlqOptions>();
  auto* show = add_dlq_command(*dlq, "show", shown, dlq_show, out);
  show->add_option("id", shown->ids, kLetterId)->type_name("ID")->required();
  add_dlq_replay(*dlq, out);
  add_dlq_discard(*dlq, out);
}

void add_endpoint(CLI::App& app, CommandRun& out) {
  auto* endpoint = app.add_subcommand("endpoint");
  endpoint->require_subcommand(1);
  auto* list = endpoint->add_subcommand("list");
  const auto listed = std::make_shared<EndpointOptions>();
  add_place(*list, *listed);
  list->callback([&out, listed] { out = [listed] { return endpoint_list(*listed); }; });
  const auto enabled = std::make_shared<EndpointOptions>();
  add_order(*endpoint, "enable", actions::EndpointDeed::enable, enabled, out);
  const auto disabled = std::make_shared<EndpointOptions>();
  auto* disable = add_order(*endpoint, "disable", actions::EndpointDeed::disable, disabled, out);
  disable->add_option("--comment", disabled->comment, "Record the reason")
      ->type_name("TEXT")
      ->required();
  const auto probed = std::make_shared<EndpointOptions>();
  auto* probe = add_order(*endpoint, "probe", actions::EndpointDeed::probe, probed, out);
  add_duration(*probe, "--wait", probed->wait,
               "Wait up to this long for the answer (default: 15s)");
}

void add_breaker(CLI::App& app, CommandRun& out) {
  auto* breaker = app.add_subcommand("breaker");
  breaker->require_subcommand(1);
  add_order(*breaker, "reset", actions::EndpointDeed::reset, std::make_shared<EndpointOptions>(),
            out);
}

void add_routes(CLI::App& app, CommandRun& out) {
  auto* routes = app.add_subcommand("routes");
  routes->require_subcommand(1);
  auto* tree = routes->add_subcommand("tree");
  const auto shown = std::make_shared<RoutesOptions>();
  add_config_file(*tree, shown->config_file);
  add_output(*tree, shown->json);
  tree->callback([&out, shown] { out = [shown] { return routes_tree(*shown); }; });
  for (const bool explain : {false, true}) {
    auto* test = routes->add_subcommand(explain ? "explain" : "test");
    const auto options = std::make_shared<RoutesOptions>();
    options->explain = explain;
    auto* labels =
        test->add_option("labels", options->labels, "Route an issue with these labels: NAME=VALUE")
            ->type_name("LABEL");
    auto* issue = test->add_option("--issue", options->issue,
                                   "Route the labels of this issue: ID from `tocsin issues list`")
                      ->type_name("ID")
                      ->excludes(labels);
    auto* at = test->add_option("--at", options->at,
                                "Look at the time intervals of this time: 2026-11-28T03:00:00Z, or "
                                "a date")
                   ->type_name("TIME");
    add_place(*test, *options);
    std::vector<CLI::Option*> sources{labels, issue};
    if (!explain) {
      sources.push_back(test->add_option("--file", options->file,
                                         "Check the cases of this YAML file (docs/routes.md)")
                            ->type_name("FILE")
                            ->excludes(labels)
                            ->excludes(issue)
                            ->excludes(at));
      test->add_option("--expect", options->expected,
                       "Fail unless exactly these receivers are told: a,b; an empty text means "
                       "nobody")
          ->type_name("RECEIVERS")
          ->delimiter(',')
          ->allow_extra_args(false);
      test->add_flag("--explain", options->explain, "Show which matcher failed on other routes");
    }
    test->callback([&out, options, sources, test] {
      bool given = false;
      for (const CLI::Option* one : sources) given = given || one->count() > 0;
      if (!given) throw CLI::RequiredError("LABEL, --issue or --file");
      const auto* expect = test->get_option_no_throw("--expect");
      options->expects = expect != nullptr && expect->count() > 0;
      std::erase(options->expected, "");
      out = [options] { return routes_test(*options); };
    });
  }
}

void add_simulate(CLI::App& app, CommandRun& out) {
  auto* simulate = app.add_subcommand("simulate");
  const auto options = std::make_shared<SimulateOptions>();
  simulate
      ->add_option("--events", options->events,
                   "Read events from this file instead of topics: one JSON CloudEvent per line, or "
                   "the output of `tocsin tail -o json`")
      ->type_name("FILE");
  simulate->add_option("--since", options->since, "Use only events since this time or span")
      ->type_name("TIME");
  simulate->add_option("--until", options->until, "Use only events before this time or span")
      ->type_name("TIME");
  add_duration(*simulate, "--after", options->after,
               "Continue this long after the last event (default: 10m)");
  simulate
      ->add_option("--speed", options->speed,
                   "Play this many times as fast as it happened (default: without waiting)")
      ->type_name("FACTOR")
      ->check(CLI::PositiveNumber);
  simulate->add_flag("--decisions", options->decisions,
                     "Show flushes that notify nobody too, with the reason");
  add_place(*simulate, *options);
  simulate->callback([&out, options] { out = [options] { return simulate_command(*options); }; });
}

}  // namespace tocsin::app
