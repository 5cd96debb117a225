#include "app/cli/template_command.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "actions/actions.h"
#include "app/cli/looking.h"
#include "app/cli/receiver_choice.h"
#include "app/config/app_config.h"
#include "app/config/route_moves.h"
#include "app/process/exit_code.h"
#include "app/view/topic_view.h"
#include "app/view/view_words.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/log.h"
#include "core/system_clock.h"
#include "core/telemetry.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kTemplatePatience = 60s;

/// What a message is made of.
struct MessageMatter {
  core::NotifiedIssue issue;
  std::optional<core::RunTold> run;
};

// A value of each kind that a template may name; the label shows how values are escaped.
MessageMatter example_matter(const std::string& cluster, core::WallTime now) {
  MessageMatter out;
  core::Issue& issue = out.issue.issue;
  issue.event_id = "iss_example";
  issue.source = "/" + cluster + "/rules/exploding_tensor";
  issue.rule = issue.rule_type = "exploding_tensor";
  issue.severity = core::Severity::error;
  issue.time = issue.starts_at = now - 90s;
  issue.labels = {{"cluster", cluster},  {"example", "quotes \" and <angle> & ampersand"},
                  {"job", "digits"},     {"rule", issue.rule},
                  {"severity", "error"}, {"worker", "worker_0"}};
  issue.summary = "loss became NaN at train step 302 on worker_0.";
  issue.description = "An example: no run is affected.";
  issue.recommendation = "Lower the learning rate, or clip gradients.";
  issue.annotations = {{"title", "loss is NaN"}};
  issue.run.uid.bytes.fill(0xAB);
  issue.run.job = "digits";
  issue.mode = core::Mode::train;
  issue.step = issue.global_step = 302;
  issue.evidence.observed = {"non_finite", 1};
  issue.evidence.op = ">=";
  issue.evidence.threshold = core::NamedNumber{"limit", 1};
  out.run.emplace();
  out.run->run = issue.run;
  out.run->step = 302;
  out.run->started_at = now - 10min;
  out.run->world_size = 1;
  return out;
}

// The recorded issue that goes by `id`, with what is known of its run. not_found: none, or several.
core::Result<MessageMatter> recorded_matter(const TemplateRenderOptions& options) {
  Looking looking;
  if (auto opened = looking.open(options.config_file, options.out); !opened) return opened.error();
  TopicView view;
  view.look_for(options.issue);
  if (const auto read = read_view(looking.transport(), view, kTemplatePatience); !read)
    return read.error();
  std::vector<const TopicView::SeenIssue*> found;
  for (const auto& entry : view.issues()) {
    if (goes_by(entry.first, entry.second.newest, options.issue)) found.push_back(&entry.second);
  }
  if (found.size() != 1) {
    return core::not_found((found.empty() ? "no issue" : std::to_string(found.size()) + " issues") +
                           " with ID " + core::visible(options.issue, 100) +
                           "; see: tocsin issues list --all");
  }
  MessageMatter out;
  out.issue.issue = found.front()->newest;
  const auto run = view.runs().find(out.issue.issue.run.uid);
  if (run == view.runs().end()) return out;
  const core::JobEvent& job = run->second;
  out.run.emplace();
  out.run->run = job.run;
  out.run->labels = job.labels;
  out.run->step = job.step;
  out.run->started_at = job.started_at;
  out.run->world_size = job.world_size;
  if (job.phase == core::JobPhase::ended) {
    out.run->outcome = job.outcome;
    out.run->exit_code = job.exit_code;
    out.run->ended_at = job.ended_at;
  }
  const auto stop = view.stops().find(job.run.uid);
  if (stop != view.stops().end() && !stop->second.command.dry_run)
    out.run->stop = stop->second.told;
  return out;
}

void set_status(core::Issue& issue, bool resolved, core::WallTime now) {
  if (!resolved) {
    issue.status = core::IssueStatus::firing;
    issue.resolution = core::Resolution::none;
    issue.ending.reset();
    issue.ends_at.reset();
  } else if (issue.status == core::IssueStatus::firing) {
    issue.status = core::IssueStatus::resolved;
    issue.resolution = core::Resolution::recovered;
    issue.ends_at = now;
    issue.ending = core::Ending{"It has not been seen since.", "", issue.step, issue.global_step};
  }
}

// As the router would decide it for the first route that leads there; else grouped by nothing.
core::Notification message_for(const actions::ConfiguredIntegration& integration,
                               const MessageMatter& matter, const routing::Router* router,
                               bool resolved, core::WallTime now) {
  core::Notification out;
  const core::Issue& issue = matter.issue.issue;
  out.integration = integration.common.id;
  out.type = integration.type;
  out.receiver = integration.receiver;
  out.route_id = "template-render";
  out.group_key = "{}:{}";
  if (router != nullptr) {
    for (const auto& leaf : router->explain(issue.labels).leaves) {
      if (std::find(leaf.integrations.begin(), leaf.integrations.end(), out.integration) ==
          leaf.integrations.end())
        continue;
      out.route_id = leaf.route_id;
      out.group_key = leaf.group_key;
      out.group_labels = leaf.group_labels;
      break;
    }
  }
  out.group_hash = core::hex(core::sha256(out.group_key));
  out.notification_id =
      core::make_id("ntf_", {"template-render", out.integration, resolved ? "close" : "open"});
  out.kind = resolved ? core::NotificationKind::close : core::NotificationKind::open;
  out.reason = resolved ? "all_resolved" : "first";
  out.firing = !resolved;
  out.firing_count = resolved ? 0 : 1;
  out.resolved_count = resolved ? 1 : 0;
  out.common_labels = issue.labels;
  out.issues.push_back(matter.issue);
  out.issues.back().issue_key = core::issue_key(issue.labels);
  set_status(out.issues.back().issue, resolved, now);
  if (matter.run) out.runs.push_back(*matter.run);
  out.decided_at = now;
  out.expires_at = now + integration.common.max_age;
  return out;
}

std::string body_text(const std::string& body) {
  std::string out;
  for (std::size_t begin = 0; begin < body.size();) {
    const std::size_t end = std::min(body.find('\n', begin), body.size());
    out += core::visible(body.substr(begin, end - begin), body.size()) + "\n";
    begin = end + 1;
  }
  return out;
}

std::string rendering_text(const actions::Trial& trial) {
  std::string out = "# " + core::visible(trial.integration, 100) + " (" + trial.type + ")\n";
  if (!trial.skipped.empty()) return out + "# skipped: it " + trial.skipped + "\n";
  for (const actions::TrialStep& step : trial.steps) {
    if (step.exchanges.empty())
      out += "# no message: " + core::visible(step.outcome.detail, 2000) + "\n";
    for (const actions::Exchange& one : step.exchanges)
      out += "# " + core::visible(one.request, 2000) + "\n" + body_text(one.request_body);
  }
  return out;
}

int rendering_code(const std::vector<actions::Trial>& trials) {
  const bool all_made = std::all_of(trials.begin(), trials.end(), [](const actions::Trial& trial) {
    return !trial.skipped.empty() || trial.passed();
  });
  const bool one_made = std::any_of(trials.begin(), trials.end(),
                                    [](const actions::Trial& trial) { return trial.passed(); });
  return all_made && one_made ? kOk : kFailed;
}

}  // namespace

int template_render(const TemplateRenderOptions& options) {
  const auto config = receiver_configuration(options.config_file);
  if (!config) return kConfiguration;
  const auto chosen = chosen_integrations(options.receiver, config->receivers);
  if (chosen.empty()) return no_such_receiver(options.receiver, config->receivers);
  core::SystemClock clock;
  core::Result<MessageMatter> matter = options.issue.empty()
                                           ? example_matter(config->cluster, clock.now())
                                           : recorded_matter(options);
  if (!matter) return refuse(matter.error());
  const auto routes = RoutePreview::of(*config);
  const routing::Router* router = routes ? routes->router() : nullptr;
  core::NullLog log;
  core::NullTelemetry telemetry;
  actions::Environment environment = trial_environment(*config);
  environment.clock = &clock;
  environment.log = &log;
  environment.telemetry = &telemetry;
  environment.try_record = [](const core::OutRecord&) { return core::ok(); };
  actions::TrialOptions trial;
  trial.dry_run = true;
  trial.message = [&](const actions::ConfiguredIntegration& integration, core::WallTime now) {
    return message_for(integration, *matter, router, options.resolved, now);
  };
  std::vector<actions::Trial> trials;
  core::ValueList list;
  for (const auto& integration : chosen) {
    trials.push_back(actions::try_integration(integration, environment, trial));
    if (options.json) {
      list.push_back(actions::to_value(trials.back()));
    } else {
      std::cout << (trials.size() == 1 ? "" : "\n") << rendering_text(trials.back());
    }
  }
  if (options.json) std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  return rendering_code(trials);
}

}  // namespace tocsin::app
