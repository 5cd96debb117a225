#include "app/cli/silence_request.h"

#include <algorithm>
#include <utility>

#include "app/config/named_interval.h"
#include "app/process/person.h"
#include "app/view/which_run.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::Status;
using routing::Silence;

constexpr core::Duration kUsualSilence = 1h;
constexpr core::Duration kUsualQuiet = 10min;
/// One that ends with the problem has an end all the same, for the problem that never does.
constexpr core::Duration kUsualUntilResolved = 24h * 7;
constexpr core::Duration kUsualRecurring = 24h * 30;

void set_matchers(Silence& silence, std::vector<std::string> sets) {
  silence.matchers.clear();
  silence.matcher_sets.clear();
  if (sets.size() == 1) {
    silence.matchers = std::move(sets.front());
  } else {
    silence.matcher_sets = std::move(sets);
  }
}

Status set_annotations(const SilenceTerms& terms, Silence& silence) {
  for (const std::string& text : terms.annotations) {
    const std::size_t at = text.find('=');
    if (at == std::string::npos || at == 0) {
      return core::invalid_argument("--annotation " + core::visible(text, 100) +
                                    ": expected NAME=TEXT");
    }
    silence.annotations[text.substr(0, at)] = text.substr(at + 1);
    if (at + 1 == text.size()) silence.annotations.erase(text.substr(0, at));
  }
  return core::ok();
}

bool recurs(const SilenceTerms& terms) {
  return !terms.time_interval.empty() || !terms.times.empty() || !terms.weekdays.empty() ||
         !terms.location.empty();
}

Status set_recurrence(const SilenceTerms& terms, const std::string& config_file, Silence& silence) {
  if (!recurs(terms)) return core::ok();
  routing::Recurrence recurrence;
  if (!terms.time_interval.empty()) {
    if (!terms.times.empty() || !terms.weekdays.empty() || !terms.location.empty()) {
      return core::invalid_argument(
          "give either --time-interval or --times, --weekdays and --location");
    }
    auto interval = named_interval(config_file, terms.time_interval);
    if (!interval) return interval.error();
    recurrence.time_interval = interval->name;
    recurrence.windows = std::move(interval->windows);
  } else {
    routing::TimeWindow window;
    for (const std::string& text : terms.times) {
      const std::size_t at = text.find('-');
      if (at == std::string::npos) {
        return core::invalid_argument("--times " + core::visible(text, 100) +
                                      ": expected a part of a day such as 20:00-24:00");
      }
      window.times.push_back({text.substr(0, at), text.substr(at + 1)});
    }
    window.weekdays = terms.weekdays;
    window.location = terms.location;
    recurrence.windows.push_back(std::move(window));
  }
  const auto calendar = routing::Calendar::compile(recurrence.windows);
  if (!calendar) return core::invalid_argument(calendar.error().message);
  silence.recurrence = std::move(recurrence);
  return core::ok();
}

Status set_end(const SilenceTerms& terms, core::WallTime from, core::Duration usual,
               Silence& silence) {
  if (!terms.until.empty() && terms.lasts) {
    return core::invalid_argument("give either --for or --until");
  }
  if (terms.until.empty()) {
    silence.ends_at = from + terms.lasts.value_or(usual);
    return core::ok();
  }
  const auto end = core::parse_rfc3339(terms.until);
  if (!end) {
    return core::invalid_argument("--until " + core::visible(terms.until, 100) +
                                  ": expected a time such as 2026-01-02T03:04:05Z");
  }
  silence.ends_at = *end;
  return core::ok();
}

void set_plain(const SilenceTerms& terms, Silence& silence) {
  if (!terms.comment.empty()) silence.comment = terms.comment;
  if (!terms.actions.empty()) silence.actions = terms.actions == "all" ? "" : terms.actions;
  if (!terms.announce.empty()) {
    silence.announce_on_unmute = terms.announce == "never" ? "" : terms.announce;
  }
  if (terms.until_resolved && !silence.until_resolved) {
    silence.until_resolved = true;
    silence.quiet_for = kUsualQuiet;
  }
  if (terms.quiet_for) silence.quiet_for = *terms.quiet_for;
  if (terms.auto_expire_unmatched) silence.auto_expire_unmatched = *terms.auto_expire_unmatched;
}

}  // namespace

core::Result<std::vector<std::string>> asked_sets(const SilenceTerms& terms,
                                                  const TopicView& view) {
  std::vector<std::string> first = terms.matchers;
  if (!terms.run.empty()) {
    const auto run = which_run(view.runs(), terms.run, terms.job);
    if (!run) return run.error();
    first.push_back("run_uid=\"" + core::to_text(run->run.uid) + "\"");
  } else if (!terms.job.empty()) {
    first.push_back("job=" + core::to_json(core::Value(terms.job)));
  }
  std::vector<std::string> out;
  const auto add = [&](const std::vector<std::string>& texts) -> Status {
    const auto parsed = routing::Matchers::parse(texts);
    if (!parsed) return parsed.error();
    out.push_back(parsed->canonical());
    return core::ok();
  };
  if (!first.empty()) {
    if (Status good = add(first); !good) return good.error();
  }
  for (const std::string& set : terms.or_sets) {
    if (Status good = add({set}); !good) return good.error();
  }
  return out;
}

core::Result<Silence> asked_silence(const SilenceTerms& terms, const TopicView& view,
                                    const std::string& config_file, core::WallTime now) {
  Silence out;
  auto sets = asked_sets(terms, view);
  if (!sets) return sets.error();
  set_matchers(out, std::move(*sets));
  out.starts_at = now + terms.begins;
  core::Duration usual = terms.until_resolved ? kUsualUntilResolved : kUsualSilence;
  if (recurs(terms)) usual = kUsualRecurring;
  if (Status good = set_end(terms, out.starts_at, usual, out); !good) return good.error();
  if (Status good = set_recurrence(terms, config_file, out); !good) return good.error();
  if (Status good = set_annotations(terms, out); !good) return good.error();
  out.created_by = terms.author.empty() ? this_person() : terms.author;
  set_plain(terms, out);
  return out;
}

core::Result<Silence> asked_change(const SilenceTerms& terms, const Silence& old,
                                   const TopicView& view, const std::string& config_file,
                                   core::WallTime now) {
  Silence out = old;
  auto sets = asked_sets(terms, view);
  if (!sets) return sets.error();
  if (!sets->empty()) set_matchers(out, std::move(*sets));
  if (terms.begins > core::Duration::zero()) out.starts_at = now + terms.begins;
  if (terms.lasts || !terms.until.empty()) {
    if (Status good = set_end(terms, std::max(now, out.starts_at), {}, out); !good)
      return good.error();
  } else if (old.ends_at <= now) {  // it begins anew, for as long
    out.starts_at = std::max(out.starts_at, now);
    out.ends_at = out.starts_at + (old.ends_at - old.starts_at);
  }
  if (Status good = set_recurrence(terms, config_file, out); !good) return good.error();
  if (Status good = set_annotations(terms, out); !good) return good.error();
  if (!terms.author.empty()) out.created_by = terms.author;
  set_plain(terms, out);
  return out;
}

}  // namespace tocsin::app
