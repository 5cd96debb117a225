#include "routing/tables/acks.h"

#include <algorithm>
#include <charconv>

#include "core/fields/json_in.h"
#include "core/fields/notification.h"
#include "core/fields/out.h"

namespace tocsin::routing {

using core::How;
using core::Nanoseconds;
using core::Of;
using core::Status;
using core::WallTime;

namespace {

constexpr std::size_t kMaxAckState = std::size_t{1} << 20;
/// An acknowledgement may be read before the issue it names: they come on topics of their own.
constexpr core::Duration kAckLate = std::chrono::minutes(10);

/// Hash and generation of "<hash>" or "<hash>-<generation in base 36>"; 0: whichever it is.
std::pair<std::string, std::uint64_t> incident_of(const std::string& group) {
  constexpr int kBase = 36;
  const std::size_t dash = group.find('-');
  std::uint64_t generation = 0;
  if (dash != std::string::npos) {
    const char* const end = group.data() + group.size();
    const auto [stop, error] = std::from_chars(group.data() + dash + 1, end, generation, kBase);
    if (error != std::errc{} || stop != end) return {};
  }
  return {group.substr(0, dash), generation};
}

}  // namespace

template <typename A>
void fields(A& io, Of<A, AckTarget>& target) {
  io.field("issues", target.issues, "", How::omit_if_empty);
  io.field("group", target.group, "", How::omit_if_empty);
  io.field("run", target.run, "", How::omit_if_empty);
}

template <typename A>
void fields(A& io, Of<A, AckState>& ack) {
  io.field("told", ack.told, "", How::required);
  io.field("origin", ack.origin);
  io.field("target", ack.target);
  io.field("taken_at", Nanoseconds{ack.taken_at}, "", How::required);
  io.field("ends_at", Nanoseconds{ack.ends_at}, "", How::required);
  io.field("expired", ack.expired, "", How::omit_if_empty);
  io.rows("episodes", ack.episodes);
  std::vector<std::string> untold;
  if constexpr (!A::kReading) untold.assign(ack.untold.begin(), ack.untold.end());
  io.field("untold", untold, "", How::omit_if_empty);
  if constexpr (A::kReading) ack.untold = {untold.begin(), untold.end()};
}

std::string encode(const AckState& state) { return core::write_json(state); }

Status decode(std::string_view value, AckState& state) {
  if (const Status read = core::read_json(value, kMaxAckState, state); !read) {
    return core::Error{core::Code::data_loss, read.error().message};
  }
  return core::ok();
}

// ---- what is acknowledged

std::vector<IssueState*> Acks::firing_of(const AckTarget& target) const {
  std::set<std::string> keys(target.issues.begin(), target.issues.end());
  if (!target.run.empty()) {
    for (const std::string& key : issues_.firing_of(target.run)) keys.insert(key);
  }
  if (!target.group.empty()) {
    const auto [hash, generation] = incident_of(target.group);
    const Group* group = groups_.find(hash);
    if (group != nullptr && (generation == 0 || generation == group->generation)) {
      for (const auto& [key, member] : group->members) keys.emplace(key);
    }
  }
  std::vector<IssueState*> out;
  for (const std::string& key : keys) {
    IssueState* issue = issues_.state_of(key);
    if (issue != nullptr && issue->firing) out.push_back(issue);
  }
  return out;
}

Status Acks::take_on(const std::string& id, core::AckTold told, std::string origin,
                     AckTarget target, WallTime now) {
  const bool known = table_.find(id) != nullptr;
  if (!known && table_.size() >= kMaxAcks) {
    return core::Error{core::Code::resource_exhausted,
                       "more than " + std::to_string(kMaxAcks) + " acknowledgements"};
  }
  if (known) withdraw(id, now);
  AckState& ack = table_.make(id);
  ack = {};
  ack.ends_at = told.until.value_or(now + limits_.ack_timeout);
  ack.told = std::move(told);
  ack.origin = std::move(origin);
  ack.target = std::move(target);
  ack.taken_at = now;
  for (IssueState* issue : firing_of(ack.target)) {
    // What was taken on before has been passed on before: two tools do not tell each other for ever.
    const bool news = of(*issue) == nullptr;
    cover(id, ack, *issue);
    for (Group* group : issue->groups) {
      if (group->route == nullptr || !group->route->propagate_ack || !news) continue;
      ack.untold.insert(group->hash);
    }
    if (!ack.untold.empty()) groups_.pull(*issue, now);
    groups_.change_all_of(*issue);
  }
  recent_.insert(id);
  origins_.push_back(ack.origin);
  expect(id);
  table_.touch(id);
  return core::ok();
}

void Acks::cover(const std::string& id, AckState& ack, const IssueState& issue) {
  uncover(issue.key);
  ack.episodes[issue.key.text()] = issue.episode;
  ack_of_[issue.key] = id;
  table_.touch(id);
}

void Acks::uncover(std::string_view issue_key) {
  const auto found = ack_of_.find(issue_key);
  if (found == ack_of_.end()) return;
  if (AckState* before = table_.find(found->second)) {
    if (const auto covered = before->episodes.find(issue_key); covered != before->episodes.end()) {
      before->episodes.erase(covered);
    }
    table_.touch(found->second);
  }
  ack_of_.erase(found);
}

void Acks::look_again(const AckState& ack, WallTime now) {
  for (const auto& [key, episode] : ack.episodes) {
    IssueState* issue = issues_.state_of(key);
    if (issue == nullptr || !issue->firing || issue->episode != episode) continue;
    groups_.change_all_of(*issue);
    groups_.pull(*issue, now);
  }
}

void Acks::withdraw(const std::string& id, WallTime now) {
  const AckState* found = table_.find(id);
  if (found == nullptr) return;
  look_again(*found, now);
  erase(id);
}

void Acks::erase(const std::string& id) {
  std::erase_if(ack_of_, [&](const auto& entry) { return entry.second == id; });
  recent_.erase(id);
  agenda_.cancel(Due::end_ack, id);
  table_.erase(id);
}

bool Acks::covers(const AckState& ack, std::string_view issue_key) const {
  const auto& named = ack.target.issues;
  if (std::find(named.begin(), named.end(), issue_key) != named.end()) return true;
  const IssueState* issue = issues_.state_of(issue_key);
  return issue != nullptr && !ack.target.run.empty() &&
         core::to_text(issue->issue.run.uid) == ack.target.run;
}

const AckState* Acks::of(const IssueState& issue) {
  if (!issue.firing || table_.size() == 0) return nullptr;
  if (const auto found = ack_of_.find(issue.key); found != ack_of_.end()) {
    const AckState& ack = table_.at(found->second);
    if (ack.episodes.find(issue.key)->second == issue.episode) return ack.expired ? nullptr : &ack;
  }
  for (const std::string& id : recent_) {
    AckState& ack = table_.at(id);
    if (ack.expired || issue.issue.starts_at > ack.told.at || !covers(ack, issue.key)) continue;
    cover(id, ack, issue);
    return &ack;
  }
  return nullptr;
}

std::size_t Acks::acked() const {
  return static_cast<std::size_t>(
      std::count_if(ack_of_.begin(), ack_of_.end(), [&](const auto& entry) {
        const AckState& ack = table_.at(entry.second);
        const IssueState* issue = issues_.state_of(entry.first);
        return !ack.expired && issue != nullptr && issue->firing &&
               ack.episodes.find(entry.first)->second == issue->episode;
      }));
}

// ---- what is told of it

Acks::News Acks::news(const Group& group) const {
  News out;
  if (table_.size() == 0) return out;
  for (const auto& [key, member] : group.members) {
    const auto found = ack_of_.find(member.state->key);
    if (found == ack_of_.end()) continue;
    const AckState& ack = table_.at(found->second);
    if (!ack.untold.contains(group.hash)) continue;
    (ack.expired ? out.expired : out.taken) = &ack;
  }
  return out;
}

void Acks::told(const Group& group, bool expired) {
  std::set<std::string> ids;
  for (const auto& [key, member] : group.members) {
    if (const auto found = ack_of_.find(member.state->key); found != ack_of_.end())
      ids.insert(found->second);
  }
  for (const std::string& id : ids) {
    AckState& ack = table_.at(id);
    if (ack.expired == expired && ack.untold.erase(group.hash) > 0) table_.touch(id);
  }
}

// ---- its end

void Acks::expect(const std::string& id) {
  const AckState* ack = table_.find(id);
  if (ack != nullptr && !ack->expired) agenda_.set(Due::end_ack, id, ack->ends_at);
}

void Acks::end(const Agenda::Entry& due, WallTime now) {
  AckState* ack = table_.find(due.key);
  if (ack == nullptr) return;
  ack->expired = true;
  ack->untold.clear();
  for (const auto& [key, episode] : ack->episodes) {
    const IssueState* issue = issues_.state_of(key);
    if (issue == nullptr || !issue->firing || issue->episode != episode) continue;
    for (const Group* group : issue->groups) ack->untold.insert(group->hash);
  }
  recent_.erase(due.key);
  look_again(*ack, now);
  table_.touch(due.key);
}

void Acks::forget(WallTime now) {
  if (table_.size() == 0) return;
  std::vector<std::string> gone;
  for (const auto& [id, ack] : table_.in_order()) {
    if (now > ack->taken_at + kAckLate) recent_.erase(std::string(id));
    std::erase_if(ack->untold, [&](const std::string& hash) {
      const Group* group = groups_.find(hash);
      return group == nullptr || !group->active();
    });
    const bool fires =
        std::any_of(ack->episodes.begin(), ack->episodes.end(), [&](const auto& entry) {
          const IssueState* issue = issues_.state_of(entry.first);
          return issue != nullptr && issue->firing && issue->episode == entry.second;
        });
    const bool may_come = !ack->expired && now <= ack->taken_at + kAckLate;
    if (ack->untold.empty() && !may_come && (ack->expired || !fires)) gone.emplace_back(id);
  }
  for (const std::string& id : gone) erase(id);
}

void Acks::restored() {
  for (const auto& [id, ack] : table_.in_order()) {
    const std::string key(id);
    for (const auto& [issue, episode] : ack->episodes) ack_of_[issue] = key;
    if (!ack->expired) recent_.insert(key);
    expect(key);
  }
}

}  // namespace tocsin::routing
