#include "routing/suppress/silence_notices.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/identity.h"
#include "core/visible_text.h"
#include "routing/tables/own_issues.h"

namespace tocsin::routing {
namespace {

using core::Issue;
using core::WallTime;

constexpr core::Duration kNoticesEvery = std::chrono::seconds(10);
constexpr core::Duration kBeforeItsEnd = std::chrono::minutes(15);
constexpr std::size_t kComparisonsOfALook = 1'000'000;
constexpr std::size_t kNamedIssues = 3;
constexpr std::size_t kLongestMatchers = 160;
constexpr std::size_t kLongestNote = 300;

std::string_view notice_name() { return own_issue(RouterIssue::silence_notice).name; }

core::Labels notice_labels(std::string_view id) {
  core::Labels out;
  out.set("rule", notice_name());
  out.set("silence", id);
  return out;
}

std::string minute_of(WallTime time) {
  std::string out = core::to_rfc3339(time).substr(0, 16);
  out[10] = ' ';
  return out + " UTC";
}

std::string counted(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " issue" : " issues");
}

std::string named(const std::vector<std::string>& some, std::size_t count) {
  std::string out;
  for (const std::string& one : some) out += (out.empty() ? ": " : "; ") + one;
  if (count > some.size()) out += "; " + std::to_string(count - some.size()) + " more";
  return out;
}

/// As the router's other issues: without the time of the silence, which a restart would not change.
Issue notice_of(const std::string& source, std::string_view id, core::Severity severity,
                std::string_view phase, WallTime now) {
  Issue out;
  out.labels = notice_labels(id);
  out.labels.set("severity", to_string(severity));
  out.severity = severity;
  out.source = source;
  out.rule = out.rule_type = notice_name();
  out.time = out.starts_at = now;
  out.sequence = static_cast<std::uint64_t>(core::nanoseconds(now));
  out.explicit_expiry = true;
  out.event_id = core::make_id("iss_", {out.rule, id, phase, std::to_string(out.sequence)});
  return out;
}

void describe(Issue& out, std::string_view id, const Silence& silence) {
  const std::string what = core::visible(matchers_text(silence), kLongestMatchers);
  out.annotations = {{"title", what + " is silenced until " + minute_of(silence.ends_at)}};
  out.description = "By " + core::visible(silence.created_by, kLongestNote) + ": " +
                    core::visible(silence.comment, kLongestNote) +
                    (silence.actions == "notify"          ? ". Stops go on."
                     : silence.actions == "stop_training" ? ". Only stops are held back."
                                                          : ". Stops are held back too.");
  out.recommendation = "To end it now: tocsin silence expire " + std::string(id);
}

}  // namespace

std::optional<WallTime> SilenceNotices::next() const {
  if (!wanted_ || silences_.in_order().empty()) return std::nullopt;
  return looked_at_ ? *looked_at_ + period_ : WallTime{};
}

void SilenceNotices::look_at_issues(std::vector<Hidden>& hidden,
                                    std::set<std::string>& told) const {
  std::vector<std::size_t> matching;
  issues_.for_each([&](const IssueState& issue) {
    if (!issue.firing || issue.issue.shadow) return;
    if (is_silence_notice(issue.issue.rule())) {
      told.insert(issue.issue.labels.get("silence"));
      return;
    }
    silences_.match(issue.issue.labels, matching);
    for (const std::size_t i : matching) {
      Hidden& of = hidden[i];
      ++of.count;
      if (of.some.size() < kNamedIssues) {
        const std::string job = issue.issue.labels.get("job");
        of.some.push_back(core::visible((job.empty() ? "" : job + ", ").append(issue.issue.rule()),
                                        kLongestMatchers));
      }
    }
  });
}

void SilenceNotices::look(WallTime now) {
  if (!wanted_) return;
  if (looked_at_ && now < *looked_at_ + period_) return;
  looked_at_ = now;
  const auto& all = silences_.in_order();
  const std::size_t cost = all.size() * issues_.size() / kComparisonsOfALook;
  period_ = kNoticesEvery * static_cast<core::Duration::rep>(1 + cost);
  std::vector<Hidden> hidden(all.size());
  std::set<std::string> told;
  look_at_issues(hidden, told);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string id(all[i].first);
    const Silence& silence = all[i].second->silence;
    const bool holds = silence.starts_at <= now && now < silence.ends_at;
    if (holds) {
      follow(id, silence, hidden[i], now);
    } else if (told.contains(id)) {
      end(id, &silence, hidden[i], now);
    }
    told.erase(id);
  }
  for (const std::string& id : told) end(id, nullptr, {}, now);  // taken back, or long over
}

void SilenceNotices::follow(std::string_view id, const Silence& silence, const Hidden& hidden,
                            WallTime now) {
  const bool soon = hidden.count > 0 && silence.ends_at - now <= kBeforeItsEnd &&
                    silence.ends_at - silence.starts_at >= 2 * kBeforeItsEnd;
  const auto wanted = soon ? core::Severity::warning : core::Severity::info;
  const IssueState* known = issues_.state_of(core::issue_key(notice_labels(id)));
  const bool fires = known != nullptr && known->firing;
  if (fires && known->issue.severity == wanted) return;
  Issue notice = notice_of(options_.source, id, wanted, soon ? "soon" : "begun", now);
  describe(notice, id, silence);
  // The message of the end shows these words again, beside those of the end.
  const std::string hid =
      "it hid " + counted(hidden.count) + named(hidden.some, hidden.count) + ".";
  if (soon) {
    notice.summary = "Shortly before its end " + hid;
    notice.recommendation = "To go on: tocsin silence update " + std::string(id) + " --for 2h";
  } else if (hidden.count == 0) {
    notice.summary = "When it began, nothing that it matches fired.";
  } else {
    notice.summary = "When it began, " + hid;
  }
  intake_.on_issue(std::move(notice), now);
}

void SilenceNotices::end(const std::string& id, const Silence* silence, const Hidden& hidden,
                         WallTime now) {
  Issue notice = notice_of(options_.source, id, core::Severity::info, "over", now);
  notice.status = core::IssueStatus::resolved;
  notice.resolution = core::Resolution::recovered;
  notice.ends_at = silence == nullptr ? now : std::min(now, silence->ends_at);
  notice.starts_at = std::min(notice.starts_at, *notice.ends_at);
  notice.summary = hidden.count == 0 ? "Nothing that it matched fires now."
                                     : counted(hidden.count) + " that it matched " +
                                           (hidden.count == 1 ? "fires" : "fire") + " now" +
                                           named(hidden.some, hidden.count) + ".";
  intake_.on_issue(std::move(notice), now);
}

}  // namespace tocsin::routing
