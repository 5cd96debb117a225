#include "app/view/which_run.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using Runs = std::map<core::RunUid, core::JobEvent>;
using FoundRuns = std::vector<const core::JobEvent*>;

constexpr std::size_t kMostNamed = 5;

bool begins_a_uid(const std::string& text) {
  return text.size() >= 4 && text.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

core::Error several(const std::string& said, const FoundRuns& found) {
  std::string text = said + " stands for " + std::to_string(found.size()) + " runs; name one:";
  for (std::size_t i = 0; i < std::min(found.size(), kMostNamed); ++i) {
    text += (i == 0 ? " " : ", ") + core::to_text(found[i]->run.uid);
  }
  return {core::Code::failed_precondition, text + (found.size() > kMostNamed ? ", …" : "")};
}

core::Error unknown(const Runs& runs, const std::string& said, const std::string& run) {
  std::vector<std::string> names;
  for (const auto& [uid, event] : runs) {
    if (std::find(names.begin(), names.end(), event.run.job) == names.end()) {
      names.push_back(event.run.job);
    }
  }
  const std::string near = core::nearest(run, names);
  return {core::Code::not_found,
          "no run " + said +
              (near.empty() ? "" : "; did you mean \"" + core::visible(near) + "\"?") +
              " (see: tocsin status)"};
}

FoundRuns of_job(const Runs& runs, const std::string& job) {
  FoundRuns all;
  FoundRuns open;
  for (const auto& [uid, event] : runs) {
    if (event.run.job != job) continue;
    all.push_back(&event);
    if (event.phase != core::JobPhase::ended) open.push_back(&event);
  }
  if (!open.empty() || all.empty()) return open;
  return {*std::max_element(all.begin(), all.end(),
                            [](const auto* a, const auto* b) { return a->time < b->time; })};
}

// A run's own name makes its uid together with its job's.
FoundRuns of_name(const Runs& runs, const std::string& name) {
  std::set<std::string> jobs;
  for (const auto& [uid, event] : runs) jobs.insert(event.run.job);
  FoundRuns out;
  for (const std::string& job : jobs) {
    const auto named = runs.find(core::run_uid_for(job, name));
    if (named != runs.end() && named->second.run.job == job) out.push_back(&named->second);
  }
  return out;
}

}  // namespace

core::Result<core::JobEvent> which_run(const Runs& runs, const std::string& run,
                                       const std::string& job) {
  const std::string said = "\"" + core::visible(run) + "\"" +
                           (job.empty() ? "" : " of the job \"" + core::visible(job) + "\"");
  const auto named = runs.find(core::run_uid_for(job, run));
  if (named != runs.end() && (job.empty() || named->second.run.job == job)) return named->second;
  FoundRuns found;
  if (begins_a_uid(run)) {
    for (const auto& [uid, event] : runs) {
      const bool meant = core::to_text(uid).starts_with(run);
      if (meant && (job.empty() || event.run.job == job)) found.push_back(&event);
    }
  }
  if (found.empty() && job.empty()) found = of_job(runs, run);
  if (found.empty() && job.empty()) found = of_name(runs, run);
  if (found.empty()) return unknown(runs, said, run);
  if (found.size() > 1) return several(said, found);
  return *found.front();
}

// Of a producer that writes scalars alone nothing but its issues is known.
std::map<core::RunUid, core::JobEvent> known_runs(const TopicView& view) {
  std::map<core::RunUid, core::JobEvent> out = view.runs();
  for (const auto& [key, seen] : view.issues()) {
    if (seen.newest.run.uid.nil()) continue;
    const auto [run, fresh] = out.try_emplace(seen.newest.run.uid);
    if (fresh) run->second.run = seen.newest.run;
  }
  return out;
}

}  // namespace tocsin::app
