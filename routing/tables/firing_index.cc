#include "routing/tables/firing_index.h"

#include <algorithm>

namespace tocsin::routing {

using core::WallTime;

namespace {

/// No value ends where another begins, whatever bytes it has.
void append_value(std::string& key, const std::string& value) {
  key += std::to_string(value.size());
  key += ':';
  key += value;
}

std::string& values_of(const core::Labels& labels, const std::vector<std::string>& names,
                       std::string& key) {
  key.clear();
  for (const std::string& name : names) append_value(key, labels.get(name));
  return key;
}

bool within(WallTime at, WallTime since, WallTime now) { return since < at && at <= now; }

}  // namespace

std::size_t FiringIndex::ask(FiringQuestion question) {
  questions_.push_back({std::move(question), {}, {}, {}});
  std::vector<Matchers> sets;
  for (const Question& one : questions_) sets.push_back(one.asked.matchers);
  matchers_ = MatcherIndex(std::move(sets));
  return questions_.size() - 1;
}

void FiringIndex::follow(const IssueState& state, WallTime now) {
  if (questions_.empty()) return;
  forget(state, now);
  if (state.episode == 0 || state.issue.shadow) return;
  matchers_.match(state.issue.labels, matching_);
  for (const std::size_t number : matching_) add(number, state, now);
}

void FiringIndex::forget(const IssueState& state, WallTime now) {
  const auto known = places_.find(&state);
  if (known == places_.end()) return;
  for (const Place& place : known->second) remove(place, state, now);
  places_.erase(known);
}

void FiringIndex::recall_end(const IssueState& state, WallTime at) {
  if (questions_.empty() || state.episode == 0 || state.issue.shadow) return;
  if (places_.find(&state) != places_.end()) return;
  matchers_.match(state.issue.labels, matching_);
  for (const std::size_t number : matching_) {
    Question& question = questions_[number];
    const auto bucket =
        question.buckets.find(values_of(state.issue.labels, question.asked.equal, key_));
    WallTime& changed =
        bucket == question.buckets.end() ? question.dropped_at : bucket->second.changed_at;
    changed = std::max(changed, at);
    question.quiet_since = std::max(question.quiet_since, at);
  }
}

void FiringIndex::add(std::size_t number, const IssueState& state, WallTime now) {
  Question& question = questions_[number];
  const FiringQuestion& asked = question.asked;
  const WallTime begin = state.issue.starts_at;
  const WallTime end = state.firing ? WallTime::max() : state.issue.ends_at.value_or(begin);
  const bool remembered =
      state.firing || (asked.held > core::Duration::zero() && begin + asked.min_age <= end);
  if (!remembered) return;
  const core::Labels& labels = state.issue.labels;
  Buckets::value_type& bucket =
      *question.buckets.try_emplace(values_of(labels, asked.equal, key_)).first;
  const std::size_t side = asked.apart.matches(labels) ? 1 : 0;
  const Place place{number, &bucket, side, state.firing, state.firing ? begin : end};
  Side& here = bucket.second.sides[side];
  (state.firing ? here.firing : here.ended).emplace(place.at, &state);
  bucket.second.changed_at = std::max(bucket.second.changed_at, now);
  const bool ripens = asked.min_age > core::Duration::zero();
  const WallTime moment = !state.firing ? end + asked.held : ripens ? begin + asked.min_age : now;
  question.quiet_since = std::max({question.quiet_since, now, moment});
  places_[&state].push_back(place);
  ++size_;
}

void FiringIndex::remove(const Place& place, const IssueState& state, WallTime now) {
  Question& question = questions_[place.question];
  Bucket& bucket = place.bucket->second;
  Side& here = bucket.sides[place.side];
  (place.firing ? here.firing : here.ended).erase({place.at, &state});
  --size_;
  bucket.changed_at = std::max(bucket.changed_at, now);
  question.quiet_since = std::max(question.quiet_since, now);
  if (!bucket.sides[0].empty() || !bucket.sides[1].empty()) return;
  question.dropped_at = std::max(question.dropped_at, now);
  question.buckets.erase(question.buckets.find(place.bucket->first));
}

const FiringIndex::Bucket* FiringIndex::find(const Question& question,
                                             const core::Labels& labels) const {
  if (question.buckets.empty()) return nullptr;
  const auto found = question.buckets.find(values_of(labels, question.asked.equal, key_));
  return found == question.buckets.end() ? nullptr : &found->second;
}

const IssueState* FiringIndex::deciding(std::size_t question, const core::Labels& labels,
                                        bool but_apart, WallTime tick) const {
  const Question& one = questions_[question];
  const Bucket* bucket = find(one, labels);
  if (bucket == nullptr) return nullptr;
  const std::size_t sides = but_apart ? 1 : bucket->sides.size();
  for (std::size_t i = 0; i < sides; ++i) {
    const Times& firing = bucket->sides[i].firing;
    if (!firing.empty() && firing.begin()->first + one.asked.min_age <= tick)
      return firing.begin()->second;
  }
  for (std::size_t i = 0; i < sides; ++i) {
    const Times& ended = bucket->sides[i].ended;
    if (!ended.empty() && tick < ended.rbegin()->first + one.asked.held)
      return ended.rbegin()->second;
  }
  return nullptr;
}

bool FiringIndex::may_differ(std::size_t question, WallTime since, WallTime /*now*/) const {
  return questions_[question].quiet_since > since;
}

bool FiringIndex::may_differ(std::size_t question, const core::Labels& labels, WallTime since,
                             WallTime now) const {
  if (!may_differ(question, since, now)) return false;
  const Question& one = questions_[question];
  const Bucket* bucket = find(one, labels);
  if (bucket == nullptr) return within(one.dropped_at, since, now);
  if (within(bucket->changed_at, since, now)) return true;
  return std::any_of(bucket->sides.begin(), bucket->sides.end(), [&](const Side& side) {
    const Times& firing = side.firing;
    const Times& ended = side.ended;
    const bool ripens = one.asked.min_age > core::Duration::zero();
    return (ripens && !firing.empty() &&
            within(firing.begin()->first + one.asked.min_age, since, now)) ||
           (!ended.empty() && within(ended.rbegin()->first + one.asked.held, since, now));
  });
}

}  // namespace tocsin::routing
