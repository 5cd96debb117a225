#include "collectors/hook/capture/capture_control.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/json.h"
#include "core/time.h"

namespace tocsin::hook {
namespace {

using core::Value;

std::optional<std::int64_t> integer_of(const Value* value) {
  const auto* number = core::as<std::int64_t>(value);
  return number == nullptr ? std::nullopt : std::optional<std::int64_t>(*number);
}

// `plans`: one capture section or a list of them.
std::vector<Value> plans_of(const Value& args) {
  const Value* plans = core::find(args, "plans");
  if (plans == nullptr) return {};
  if (const auto* list = core::as<core::ValueList>(*plans)) return *list;
  return {*plans};
}

bool pauses(const core::Command& command) {
  const auto* said = core::as<bool>(core::find(command.args, "pause"));
  return said != nullptr && *said;
}

core::Ack answer_to(const core::Command& command, std::string_view phase, std::string reason) {
  core::Ack ack;
  ack.command_id = command.command_id;
  ack.revision = command.revision;
  ack.action = command.action;
  ack.phase = std::string(phase);
  ack.reason = std::move(reason);
  ack.version = core::text_at(command.args, "version");
  return ack;
}

bool is_small(std::string_view collection) {
  return collection == "losses" || collection == "labels" || collection == "predictions";
}

}  // namespace

CaptureControl::CaptureControl(CapturePlan plan, const core::Clock& clock)
    : clock_(clock), plan_(std::move(plan)), governor_(plan_.config().overhead) {}

std::uint64_t CaptureControl::collection(std::string_view name) {
  const CollectionMask bit = plan_.bit(name);
  if (bit == 0) return 0;
  const std::uint64_t id = core::name_hash(name);
  collections_[id] = bit;
  small_.reset();
  forget_due();
  return id;
}

CollectionMask CaptureControl::mask_of(std::uint64_t collection) const {
  if (collection == 0) return ~CollectionMask{0};
  const auto at = collections_.find(collection);
  return at == collections_.end() ? 0 : at->second;
}

CollectionMask CaptureControl::small() {
  if (!small_) {
    small_ = 0;
    for (const auto& [collection, bit] : plan_.all()) {
      if (is_small(collection->name)) *small_ |= bit;
    }
  }
  return *small_;
}

core::ValueMap CaptureControl::thinned() const {
  core::ValueMap out;
  for (const auto& [collection, bit] : plan_.all()) {
    const Governor::Stretch& stretch = governor_.stretch();
    const std::int64_t factor = is_small(collection->name) ? stretch.small : stretch.costly;
    if (factor > 1) out.emplace_back(collection->name, factor);
  }
  return out;
}

// Grids in time advance with the first question, which is that with the larger factor; those in
// steps of the smaller one have all points of the larger one.
CollectionMask CaptureControl::due_at(core::Mode mode, std::int64_t step) {
  const auto [costly, little] = governor_.stretch();
  const core::Duration now = clock_.monotonic();
  const CollectionMask wide = plan_.due(mode, step, std::max(costly, little), now);
  if (costly == little) return wide;
  const CollectionMask dense = costly < little ? ~small() : small();
  return wide | (plan_.due(mode, step, std::min(costly, little), now) & dense);
}

CollectionMask CaptureControl::due(const StepCounter& steps) {
  if (paused_) return 0;
  if (!due_) {
    due_ = due_at(steps.mode(), steps.step());
  }
  return *due_;
}

CollectionMask CaptureControl::due_ahead(std::uint32_t ahead, const StepCounter& steps) {
  if (ahead == 0 || paused_) return due(steps);
  const std::int64_t step = steps.step() + ahead;
  if (!due_ahead_ || due_ahead_->first != step) {
    due_ahead_.emplace(step, due_at(steps.mode(), step));
  }
  return due_ahead_->second;
}

bool CaptureControl::wants(std::uint64_t collection, const StepCounter& steps) {
  const CollectionMask mask = due(steps) & mask_of(collection);
  if (mask != 0 && sampling_since_.count() < 0) sampling_since_ = clock_.monotonic();
  return mask != 0;
}

bool CaptureControl::wants_at(std::uint64_t collection, std::uint32_t ahead,
                              const StepCounter& steps) {
  const CollectionMask mask = due_ahead(ahead, steps) & mask_of(collection);
  if (mask != 0 && sampling_since_.count() < 0) sampling_since_ = clock_.monotonic();
  return mask != 0;
}

bool CaptureControl::scalars_due(std::int64_t step) const {
  const Every& every = plan_.config().scalars;
  return every.time.count() != 0 || on_grid(every, step, 1);
}

core::Status CaptureControl::define(const std::vector<CollectionConfig>& collections) {
  forget_due();
  small_.reset();
  return plan_.define(collections);
}

core::Duration CaptureControl::measuring_since() const {
  return sampling_since_.count() >= 0 ? sampling_since_ : clock_.monotonic();
}

void CaptureControl::measured(core::Duration since, CollectionMask of) {
  sampling_since_ = core::Duration{-1};
  const core::Duration spent = clock_.monotonic() - since;
  const bool all_small = of != 0 ? (of & small()) != 0 : (due_.value_or(0) & ~small()) == 0;
  governor_.sampled(spent, all_small ? Governor::Kind::small : Governor::Kind::costly);
  cost_ += spent;
}

void CaptureControl::worked(core::Duration cost) {
  governor_.sampled(cost);
  cost_ += cost;
}

bool CaptureControl::step_ends(const StepCounter& steps, core::Duration now) {
  if (due_.value_or(0) != 0) ++sampled_steps_;
  forget_due();
  sampling_since_ = core::Duration{-1};
  return steps.mode() == core::Mode::train &&
         governor_.step(now - steps.began().monotonic, plan_.smallest_every());
}

void CaptureControl::ask(core::Command command) {
  std::string slot = command.action;
  asked_.insert_or_assign(std::move(slot), std::move(command));
}

void CaptureControl::withdraw(const std::string& slot) {
  asked_.erase(slot);
  withdrawn_ = active_.erase(slot) > 0 || withdrawn_;
}

CaptureChange CaptureControl::step_begins(std::int64_t step) {
  CaptureChange out;
  const bool ended = end_asked(step, out.answers);
  const bool taken = take_asked(step, out.answers);
  out.plan = std::exchange(withdrawn_, false) || ended || taken;
  if (!out.plan) return out;
  // The union is made anew: what two have asked for stays while one of them wants it.
  plan_.restore();
  small_.reset();
  std::vector<std::string> refused;
  paused_ = false;
  for (const auto& [slot, command] : active_) {
    extend(command, refused);
    paused_ = paused_ || pauses(command);
  }
  forget_due();
  return out;
}

// By which of its bounds a command is over, empty: by its step; nullopt: it holds.
std::optional<std::string> CaptureControl::why_over(const core::Command& command,
                                                    std::int64_t step) const {
  const auto until = integer_of(core::find(command.args, "until_step"));
  if (until && step >= *until) return "";
  const auto time = core::parse_rfc3339(core::text_at(command.args, "until_time"));
  if (time && clock_.now() >= *time) return "until_time";
  const auto most = integer_of(core::find(command.args, "max_bytes"));
  const auto began = bytes_at_.find(command.action);
  const std::uint64_t taken = began == bytes_at_.end() ? 0 : bytes_ - began->second;
  if (most && *most >= 0 && taken >= static_cast<std::uint64_t>(*most)) return "max_bytes";
  return std::nullopt;
}

// True: something was in effect until this step.
bool CaptureControl::end_asked(std::int64_t step, std::vector<core::Ack>& answers) {
  bool any = false;
  for (auto one = active_.begin(); one != active_.end();) {
    auto why = why_over(one->second, step);
    if (!why) {
      ++one;
      continue;
    }
    answers.push_back(answer_to(one->second, "ended", *std::move(why)));
    answers.back().effective_step = step;
    one = active_.erase(one);
    any = true;
  }
  return any;
}

// True: somebody was answered at this step, and the plan has to be made anew.
bool CaptureControl::take_asked(std::int64_t step, std::vector<core::Ack>& answers) {
  bool any = false;
  for (auto one = asked_.begin(); one != asked_.end();) {
    const auto not_before = integer_of(core::find(one->second.args, "not_before_step"));
    if (not_before && step < *not_before) {
      ++one;
      continue;
    }
    answers.push_back(apply(one->second, step));
    if (answers.back().phase == "applied") {
      // Asked again in other terms, it goes on counting.
      const auto before = active_.find(one->first);
      const bool same =
          before != active_.end() && before->second.command_id == one->second.command_id;
      if (!same) bytes_at_[one->first] = bytes_;
      active_.insert_or_assign(one->first, one->second);
    }
    one = asked_.erase(one);
    any = true;
  }
  return any;
}

// What a command comes to on top of the client's own plan, whatever others ask for: nobody is
// answered differently for being second.
core::Ack CaptureControl::apply(const core::Command& command, std::int64_t step) {
  plan_.restore();
  std::vector<std::string> refused;
  const std::optional<bool> changed = extend(command, refused);
  if (!changed) return answer_to(command, "refused", "out_of_bounds");
  std::string names;
  for (const std::string& what : refused) names += (names.empty() ? "" : ", ") + what;
  if (!names.empty() && !*changed) return answer_to(command, "refused", "unsupported: " + names);
  core::Ack out = answer_to(command, "applied", names.empty() ? "" : "without " + names);
  out.effective_step = step;
  return out;
}

// Whether the plan has changed; nullopt: it is none.
std::optional<bool> CaptureControl::extend(const core::Command& command,
                                           std::vector<std::string>& refused) {
  bool changed = false;
  for (const Value& plan : plans_of(command.args)) {
    const auto parsed = parse_capture(core::to_json(plan));
    if (!parsed) return std::nullopt;
    const bool common = core::find(plan, "every") != nullptr;
    for (CollectionConfig collection : parsed->collections) {
      if (!collection.save.every && common) collection.save.every = parsed->every;
      for (std::string& what : plan_.extend(collection, changed)) {
        refused.push_back(std::move(what));
      }
    }
  }
  return changed;
}

}  // namespace tocsin::hook
