#include "app/cli/config_diff.h"

#include <chrono>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "app/cli/looking.h"
#include "app/config/app_config.h"
#include "app/config/route_moves.h"
#include "app/process/exit_code.h"
#include "app/view/topic_view.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::chrono::seconds kDiffPatience{60};

struct MovedIssue {
  core::Issue issue;
  RouteMove move;
};

struct ConfigChanges {
  std::vector<std::string> sections;
  std::optional<std::size_t> firing;  // nullopt: nobody looked
  std::vector<MovedIssue> moved;
};

std::optional<AppConfig> compared_file(const std::string& path) {
  config::Diagnostics diagnostics;
  AppConfig out = load_config(path, config::process_environment(), diagnostics);
  if (!diagnostics.has_errors()) return out;
  for (const auto& item : diagnostics.items()) std::cerr << config::to_text(item) << "\n";
  return std::nullopt;
}

core::Status look_at_issues(const ConfigDiffOptions& options, const RoutePreview& before,
                            const RoutePreview& after, ConfigChanges& out) {
  Looking looking;
  if (auto opened = looking.open(options.after, options.out); !opened) return opened;
  TopicView view;
  if (auto read = read_view(looking.transport(), view, kDiffPatience); !read) return read;
  out.firing = 0;
  for (const auto& [key, seen] : view.issues()) {
    const core::Issue& issue = seen.newest;
    if (issue.status != core::IssueStatus::firing) continue;
    ++*out.firing;
    RouteMove move =
        move_between(before.destinations(issue.labels), after.destinations(issue.labels));
    if (!move.empty()) out.moved.push_back({issue, std::move(move)});
  }
  return core::ok();
}

core::Value names_value(const std::vector<std::string>& names) {
  core::ValueList out;
  for (const std::string& name : names) out.emplace_back(name);
  return out;
}

core::Value changes_value(const ConfigChanges& changes) {
  core::ValueMap out{{"changed", names_value(changes.sections)}};
  if (!changes.firing) return out;
  core::ValueList moves;
  for (const auto& [issue, move] : changes.moved) {
    moves.push_back(core::ValueMap{{"id", issue.event_id},
                                   {"rule", issue.rule},
                                   {"severity", std::string(to_string(issue.severity))},
                                   {"job", issue.run.job},
                                   {"summary", issue.summary},
                                   {"lost", names_value(move.lost)},
                                   {"gained", names_value(move.gained)},
                                   {"regrouped", names_value(move.regrouped)}});
  }
  out.emplace_back("firing", static_cast<std::uint64_t>(*changes.firing));
  out.emplace_back("moves", std::move(moves));
  return out;
}

std::string names_line(const char* what, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + core::visible(name);
  return out.empty() ? out : "  " + std::string(what) + ": " + out + "\n";
}

std::string changes_text(const ConfigChanges& changes) {
  std::string out = changes.sections.empty() ? "no section differs\n" : "";
  if (out.empty()) out = names_line("differ", changes.sections).substr(2);
  if (!changes.firing) return out;
  out += std::to_string(changes.moved.size()) + " of " + std::to_string(*changes.firing) +
         " firing issues would move\n";
  for (const auto& [issue, move] : changes.moved) {
    out += "[" + std::string(to_string(issue.severity)) + "] " + core::visible(issue.run.job, 60) +
           (issue.run.job.empty() ? "" : ": ") + core::visible(issue.summary, 200) + "\n" +
           names_line("no longer told", move.lost) + names_line("newly told", move.gained) +
           names_line("closed and announced again", move.regrouped);
  }
  return out;
}

}  // namespace

int config_diff(const ConfigDiffOptions& options) {
  const auto before = compared_file(options.before);
  const auto after = compared_file(options.after);
  if (!before || !after) return kConfiguration;
  ConfigChanges changes;
  changes.sections = changed_sections(*before, *after);
  if (options.live) {
    const auto old_routes = RoutePreview::of(*before);
    if (!old_routes) return refuse(old_routes.error());
    const auto new_routes = RoutePreview::of(*after);
    if (!new_routes) return refuse(new_routes.error());
    const auto seen = look_at_issues(options, *old_routes, *new_routes, changes);
    if (!seen) return refuse(seen.error());
  }
  if (options.json) {
    std::cout << core::to_json(changes_value(changes)) << "\n";
  } else {
    std::cout << changes_text(changes);
  }
  return changes.sections.empty() && changes.moved.empty() ? kOk : kFailed;
}

}  // namespace tocsin::app
