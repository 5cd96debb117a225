#include "app/cli/silence_commands.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "app/cli/looking.h"
#include "app/cli/silence_preview.h"
#include "app/cli/silence_writer.h"
#include "app/process/exit_code.h"
#include "app/view/silence_records.h"
#include "app/view/topic_view.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "core/text_table.h"
#include "core/visible_text.h"
#include "routing/routing.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using routing::Silence;

constexpr auto kSilencePatience = 60s;
constexpr std::size_t kSilenceIdLength = 14;

/// The topics as they are, and the place to write to.
struct SilenceDesk {
  Looking looking;
  TopicView view;
  core::WallTime now{};

  core::Status open(const SilenceOptions& options) {
    if (auto opened = looking.open(options.config_file, options.out); !opened) return opened;
    auto read = read_view(looking.transport(), view, kSilencePatience);
    now = core::SystemClock().now();
    return read;
  }
  core::Status write(const std::vector<Silence>& silences) {
    return write_silences(looking.transport(), silences, view.silences(), now);
  }
};

// What is wrong with a request is wrong usage, not a wrong configuration.
int refuse_request(const core::Error& error) {
  if (error.code != core::Code::invalid_argument) return refuse(error);
  std::cerr << "tocsin: " << error.message << "\n";
  return kUsage;
}

std::string what_is_held_back(const Silence& silence) {
  if (silence.actions == "notify") return "mutes notifications of ";
  if (silence.actions == "stop_training") return "mutes stops of ";
  return "mutes notifications and stops of ";
}

std::string windows_text(const routing::Recurrence& recurrence) {
  if (!recurrence.time_interval.empty()) return "during " + recurrence.time_interval;
  std::string out;
  for (const routing::TimeWindow& window : recurrence.windows) {
    out += out.empty() ? "" : " or ";
    for (const std::string& days : window.weekdays) out += days + " ";
    for (const auto& span : window.times) out += span.start + "-" + span.end + " ";
    out += window.location.empty() ? "UTC" : window.location;
  }
  return out;
}

// When it holds, and what ends it before its time.
std::string when_text(const Silence& silence, core::WallTime now) {
  std::string out =
      "from " + core::to_rfc3339(silence.starts_at) + " until " + core::to_rfc3339(silence.ends_at);
  if (silence.recurrence) {
    out += ", " + windows_text(*silence.recurrence);
    const auto scope = routing::SilenceScope::of(silence);
    const core::WallTime from = std::max(now, silence.starts_at - 1ns);
    const auto change = scope ? scope->next_change(from, silence.ends_at) : std::nullopt;
    if (change && !scope->in_force(from)) out += " (next at " + core::to_rfc3339(*change) + ")";
  }
  if (silence.until_resolved) {
    out += ", or when all it matched has been over for " + core::to_text(silence.quiet_for);
  }
  if (silence.auto_expire_unmatched > core::Duration::zero()) {
    out += ", or when nothing matched for " + core::to_text(silence.auto_expire_unmatched);
  }
  return out;
}

int show_written(const SilenceOptions& options, const SilenceDesk& desk, const Silence& silence) {
  if (options.json) {
    std::cout << silence_json(silence) << "\n";
    return kOk;
  }
  const auto scope = routing::SilenceScope::of(silence);
  for (const std::string& doubt : unknown_names(*scope, desk.view)) {
    std::cerr << "tocsin: " << doubt << "\n";
  }
  std::cout << (options.dry_run ? "would begin" : silence.id) << "\n"
            << what_is_held_back(silence) << matchers_text(silence) << " "
            << when_text(silence, desk.now) << "; "
            << preview_text(preview(desk.view, *scope, desk.now), desk.view, desk.now, false);
  return kOk;
}

// The one silence of that id, or whose id begins so; active and pending ones before ended ones.
core::Result<Silence> one_silence(const SilenceDesk& desk, const std::string& id, bool ended_too) {
  std::vector<const Silence*> live;
  std::vector<const Silence*> ended;
  for (const auto& [known, silence] : desk.view.silences()) {
    if (id.empty() || !known.starts_with(id)) continue;
    (silence.ends_at > desk.now ? live : ended).push_back(&silence);
  }
  const auto& found = live.empty() && ended_too ? ended : live;
  if (found.size() == 1) return *found.front();
  return core::not_found(
      (found.empty() ? "no silence" : std::to_string(found.size()) + " silences") +
      std::string(ended_too ? "" : " active or pending") + " with ID " + core::visible(id, 100) +
      "; see: tocsin silence list");
}

std::string column_state(const Silence& silence, core::WallTime now) {
  std::string state = silence_state(silence, now);
  if (state == "active" && silence.recurrence && !routing::in_force(silence, now)) return "waiting";
  if (!silence.ended_by.empty()) state += " (" + core::visible(silence.ended_by, 20) + ")";
  return state;
}

int show_silences(const std::vector<const Silence*>& silences, const SilenceOptions& options,
                  core::WallTime now) {
  core::ValueList list;
  std::vector<core::TableRow> rows{
      {"ID", "STATE", "UNTIL", "BY", "ACTIONS", "MATCHERS", "COMMENT"}};
  for (const Silence* silence : silences) {
    if (const auto value = core::parse_json(silence_json(*silence), 1U << 16)) {
      list.push_back(*value);
    }
    rows.push_back({silence->id.substr(0, kSilenceIdLength), column_state(*silence, now),
                    core::to_rfc3339(silence->ends_at), core::visible(silence->created_by),
                    silence->actions.empty() ? "all" : core::visible(silence->actions),
                    core::visible(matchers_text(*silence)), core::visible(silence->comment)});
  }
  if (options.json) {
    std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  } else if (options.ids_only) {
    for (const Silence* silence : silences) std::cout << silence->id << "\n";
  } else {
    std::cout << (rows.size() == 1 ? "no silences\n" : core::text_table(rows));
  }
  return kOk;
}

std::vector<const Silence*> listed(const SilenceDesk& desk, bool all) {
  std::vector<const Silence*> out;
  for (const auto& [id, silence] : desk.view.silences()) {
    if (all || silence.ends_at > desk.now) out.push_back(&silence);
  }
  return out;
}

}  // namespace

int silence_add(const SilenceOptions& options) {
  SilenceDesk desk;
  if (const auto seen = desk.open(options); !seen) return refuse(seen.error());
  auto asked = asked_silence(options.terms, desk.view, options.config_file, desk.now);
  if (!asked) return refuse_request(asked.error());
  const Silence silence = new_silence(std::move(*asked), desk.now);
  const auto good =
      routing::check_asked(silence, desk.view.silences().size(), desk.now, options.force);
  if (!good) return refuse_request(good.error());
  if (!options.dry_run) {
    if (const auto written = desk.write({silence}); !written) return refuse(written.error());
  }
  return show_written(options, desk, silence);
}

int silence_update(const SilenceOptions& options) {
  SilenceDesk desk;
  if (const auto seen = desk.open(options); !seen) return refuse(seen.error());
  const auto old = one_silence(desk, options.id, true);
  if (!old) return refuse(old.error());
  if (options.version != 0 && options.version != old->version) {
    return refuse({core::Code::failed_precondition,
                   "silence " + old->id + " is at version " + std::to_string(old->version) +
                       ", not " + std::to_string(options.version) +
                       ": somebody changed it; look at it, and change it again"});
  }
  auto asked = asked_change(options.terms, *old, desk.view, options.config_file, desk.now);
  if (!asked) return refuse_request(asked.error());
  const auto to_write = changed_silence(*old, std::move(*asked), desk.now);
  const Silence& silence = to_write.back();
  const std::size_t known = desk.view.silences().size() - (silence.id == old->id ? 1 : 0);
  const auto good = routing::check_asked(silence, known, desk.now, options.force);
  if (!good) return refuse_request(good.error());
  if (!options.dry_run) {
    if (const auto written = desk.write(to_write); !written) return refuse(written.error());
  }
  if (silence.id != old->id && !options.json) {
    std::cerr << "tocsin: " << old->id
              << (old->ends_at > desk.now ? " has ended, and this silence takes its place: once it "
                                            "has begun, its begin and its matchers stay\n"
                                          : " had expired; this silence takes its place\n");
  }
  return show_written(options, desk, silence);
}

int silence_preview(const SilenceOptions& options) {
  SilenceDesk desk;
  if (const auto seen = desk.open(options); !seen) return refuse(seen.error());
  Silence silence;
  auto sets = asked_sets(options.terms, desk.view);
  if (!sets) return refuse_request(sets.error());
  silence.matcher_sets = std::move(*sets);
  const auto scope = routing::SilenceScope::of(silence);
  if (!scope) return refuse_request(scope.error());
  const SilencePreview found = preview(desk.view, *scope, desk.now);
  if (options.json) {
    const auto list = [](const auto& issues) {
      core::ValueList out;
      for (const auto* seen : issues) {
        core::ValueMap labels;
        for (const auto& [name, value] : seen->newest.labels.entries()) {
          labels.emplace_back(name, value);
        }
        out.push_back(core::ValueMap{{"labels", std::move(labels)},
                                     {"summary", seen->newest.summary},
                                     {"since", core::to_rfc3339(seen->since)}});
      }
      return out;
    };
    std::cout << core::to_json(
                     core::ValueMap{{"firing", list(found.firing)}, {"ended", list(found.ended)}})
              << "\n";
    return kOk;
  }
  for (const std::string& doubt : unknown_names(*scope, desk.view)) {
    std::cerr << "tocsin: " << doubt << "\n";
  }
  std::cout << preview_text(found, desk.view, desk.now, true);
  return kOk;
}

int silence_list(const SilenceOptions& options) {
  SilenceDesk desk;
  if (const auto seen = desk.open(options); !seen) return refuse(seen.error());
  return show_silences(listed(desk, options.all), options, desk.now);
}

int silence_query(const SilenceOptions& options) {
  const auto filter = routing::Matchers::parse(options.terms.matchers);
  if (!filter) return refuse_request(filter.error());
  SilenceDesk desk;
  if (const auto seen = desk.open(options); !seen) return refuse(seen.error());
  std::vector<const Silence*> found;
  for (const Silence* silence : listed(desk, options.all)) {
    const auto scope = routing::SilenceScope::of(*silence);
    if (!scope) continue;
    const bool named =
        std::any_of(scope->sets().begin(), scope->sets().end(), [&](const routing::Matchers& set) {
          core::Labels names;  // a filter asks for the values that a set names
          for (const auto& term : set.terms()) names.set(term.name, term.value);
          return filter->matches(names);
        });
    if (named) found.push_back(silence);
  }
  return show_silences(found, options, desk.now);
}

int silence_expire(const SilenceOptions& options) {
  SilenceDesk desk;
  if (const auto seen = desk.open(options); !seen) return refuse(seen.error());
  const auto found = one_silence(desk, options.id, false);
  if (!found) return refuse(found.error());
  if (const auto written = desk.write({ended_silence(*found, desk.now)}); !written) {
    return refuse(written.error());
  }
  std::cout << found->id << " ended\n";
  return kOk;
}

}  // namespace tocsin::app
