// The compiled section `capture`: which collections a tensor belongs to, which are due at a step.
#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "collectors/hook/capture/capture.h"
#include "core/collections.h"
#include "core/fields/words.h"
#include "core/statistics.h"
#include "core/text.h"

namespace tocsin::hook {
namespace {

using core::Mode;
using core::Role;
using core::Value;

CollectionConfig built_in(std::string_view name) {
  CollectionConfig out;
  out.name = std::string(name);
  const core::Collection* known = core::find_collection(name);
  if (known == nullptr) return out;
  for (const Role role : known->roles) out.roles.emplace_back(core::to_string(role));
  for (const Mode mode : known->modes) out.modes.emplace_back(core::to_string(mode));
  if (out.roles.empty()) {  // where roles are stated they decide, not names
    if (!known->include.empty()) out.include = {std::string(known->include)};
    if (!known->exclude.empty()) out.exclude = {std::string(known->exclude)};
  }
  if (!known->statistics.empty()) {
    out.statistics.emplace(known->statistics.begin(), known->statistics.end());
  }
  return out;
}

// What a built-in collection has of its own, where nothing else is given.
void complete(CollectionConfig& entry) {
  const CollectionConfig standard = built_in(entry.name);
  if (entry.include.empty() && entry.roles.empty()) {
    entry.include = standard.include;
    entry.roles = standard.roles;
    if (entry.exclude.empty()) entry.exclude = standard.exclude;
  }
  if (entry.modes.empty()) entry.modes = standard.modes;
  if (!entry.statistics) entry.statistics = standard.statistics;
}

// A name that only save_tensor() could fill, and that looks like one of ours.
std::string doubt_about(const CollectionConfig& entry) {
  if (core::find_collection(entry.name) != nullptr) return {};
  if (!entry.include.empty() || !entry.roles.empty()) return {};
  const std::string near = core::nearest(entry.name, core::collection_names());
  if (near.empty()) return {};
  return "collection " + entry.name +
         " has no patterns: only save_tensor() fills it; did you mean " + near + "?";
}

core::Status compile_patterns(const std::string& collection, const std::vector<std::string>& texts,
                              std::vector<std::unique_ptr<re2::RE2>>& out) {
  for (const std::string& text : texts) {
    auto pattern = std::make_unique<re2::RE2>(text, re2::RE2::Quiet);
    if (!pattern->ok()) {
      return core::invalid_argument("collection " + collection + ": pattern " + text + ": " +
                                    pattern->error());
    }
    out.push_back(std::move(pattern));
  }
  return core::ok();
}

}  // namespace

struct CapturePlan::State {
  struct Collection {
    CollectionConfig config;
    ByMode<SaveGrid> grids;
    std::vector<SaveGrid> dense;  // grids in steps, by commands
    std::vector<std::unique_ptr<re2::RE2>> include;
    std::vector<std::unique_ptr<re2::RE2>> exclude;
    std::uint32_t roles = 0;     // bit per role; 0: by pattern only
    std::uint32_t modes = 0xff;  // bit per mode
    core::Duration next{0};      // of grids in time
    StatisticMask statistics = 0;
    StatisticMask own_statistics = 0;  // as configured, without commands
    bool added = false;                // by a command
    bool asked_raw = false;            // by a command
    bool active = true;

    /// Compiles what `config` says, over what the section does.
    core::Status understand(const CaptureConfig& section, StatisticRequests& requests);
    [[nodiscard]] const SaveGrid& grid(Mode mode) const {
      return grids[static_cast<std::size_t>(mode)];
    }
    void lay_grids(const CaptureConfig& section);
    bool extend_grid(const SaveRule& save, bool& changed);
    [[nodiscard]] bool takes(Mode mode) const {
      return active && (modes >> static_cast<unsigned>(mode) & 1U) != 0;
    }
    /// By its steps alone, whatever the time is.
    [[nodiscard]] bool stands_on(Mode mode, std::int64_t step, std::int64_t stretch) const {
      const SaveGrid& grid = this->grid(mode);
      if (grid.lists(step)) return true;
      if (!grid.covers(step)) return false;
      return on_grid(grid.every, step, stretch) ||
             std::any_of(dense.begin(), dense.end(), [&](const SaveGrid& one) {
               return one.covers(step) && on_grid(one.every, step, stretch);
             });
    }
    [[nodiscard]] bool wants(std::string_view name, Role role) const {
      if (!active) return false;
      const re2::StringPiece text(name.data(), name.size());
      const auto hit = [&](const auto& pattern) { return re2::RE2::PartialMatch(text, *pattern); };
      if (std::any_of(exclude.begin(), exclude.end(), hit)) return false;
      if ((roles >> static_cast<unsigned>(role) & 1U) != 0) return true;
      return std::any_of(include.begin(), include.end(), hit);
    }
  };
  CaptureConfig config;
  std::vector<Collection> collections;
  StatisticRequests requests;

  /// Null: there is none.
  Collection* find(std::string_view name) {
    const auto at = std::find_if(collections.begin(), collections.end(),
                                 [&](const auto& item) { return item.config.name == name; });
    return at == collections.end() ? nullptr : &*at;
  }
};

void CapturePlan::State::Collection::lay_grids(const CaptureConfig& section) {
  for (const Mode mode : core::Words<Mode>::kAll) {
    const auto at = static_cast<std::size_t>(mode);
    grids[at] = SaveGrid{};
    grids[at].every = section.every_of(mode);
    grids[at].lay(config.save);
    grids[at].lay(config.save_in[at]);
  }
}

core::Status CapturePlan::State::Collection::understand(const CaptureConfig& section,
                                                        StatisticRequests& requests) {
  lay_grids(section);
  for (const std::string& text : config.statistics.value_or(std::vector<std::string>{})) {
    if (const auto asked = core::parse_statistic(text)) own_statistics |= requests.bit(*asked);
  }
  statistics = own_statistics;
  if (auto ok = compile_patterns(config.name, config.include, include); !ok) return ok;
  if (auto ok = compile_patterns(config.name, config.exclude, exclude); !ok) return ok;
  for (const std::string& text : config.roles) {
    const auto role = core::role_from(text);
    if (!role)
      return core::invalid_argument("collection " + config.name + ": unknown role " + text);
    roles |= 1U << static_cast<unsigned>(*role);
  }
  if (!config.modes.empty()) modes = 0;
  for (const std::string& text : config.modes) {
    const auto mode = core::mode_from(text);
    if (!mode)
      return core::invalid_argument("collection " + config.name + ": unknown mode " + text);
    modes |= 1U << static_cast<unsigned>(*mode);
  }
  return core::ok();
}

core::Result<CapturePlan> CapturePlan::compile(const CaptureConfig& config) {
  auto state = std::make_unique<State>();
  state->config = config;
  std::vector<CollectionConfig> wanted = config.collections;
  if (wanted.empty()) {
    for (const core::Collection& one : core::builtin_collections()) {
      if (one.standard) wanted.push_back(built_in(one.name));
    }
  }
  if (wanted.size() > 63) return core::invalid_argument("more than 63 collections");
  for (CollectionConfig& entry : wanted) {
    complete(entry);
    if (std::string doubt = doubt_about(entry); !doubt.empty()) {
      state->config.warnings.push_back(std::move(doubt));
    }
    State::Collection collection;
    collection.config = std::move(entry);
    if (auto ok = collection.understand(state->config, state->requests); !ok) return ok.error();
    state->collections.push_back(std::move(collection));
  }
  return CapturePlan(std::move(state));
}

CapturePlan::CapturePlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
CapturePlan::CapturePlan(CapturePlan&&) noexcept = default;
CapturePlan& CapturePlan::operator=(CapturePlan&&) noexcept = default;
CapturePlan::~CapturePlan() = default;

CollectionMask CapturePlan::collections_of(std::string_view name, Role role) const {
  CollectionMask mask = 0;
  for (std::size_t i = 0; i < state_->collections.size(); ++i) {
    if (state_->collections[i].wants(name, role)) mask |= CollectionMask{1} << i;
  }
  return mask;
}

std::vector<std::string> CapturePlan::names(CollectionMask mask) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < state_->collections.size(); ++i) {
    if ((mask >> i & 1U) != 0) out.push_back(state_->collections[i].config.name);
  }
  return out;
}

CollectionMask CapturePlan::bit(std::string_view name) {
  auto& all = state_->collections;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].config.name == name) return CollectionMask{1} << i;
  }
  if (all.size() >= 64) return 0;
  State::Collection added;
  added.config.name = std::string(name);
  added.lay_grids(state_->config);
  all.push_back(std::move(added));
  return CollectionMask{1} << (all.size() - 1);
}

bool CapturePlan::may_be_due(Mode mode, std::int64_t step, std::int64_t stretch) const {
  return std::any_of(state_->collections.begin(), state_->collections.end(), [&](const auto& one) {
    return one.takes(mode) && (one.grid(mode).in_time() || one.stands_on(mode, step, stretch));
  });
}

CollectionMask CapturePlan::due(Mode mode, std::int64_t step, std::int64_t stretch,
                                core::Duration now) {
  CollectionMask mask = 0;
  for (std::size_t i = 0; i < state_->collections.size(); ++i) {
    State::Collection& collection = state_->collections[i];
    if (!collection.takes(mode)) continue;
    const SaveGrid& grid = collection.grid(mode);
    bool hit = collection.stands_on(mode, step, stretch);
    if (grid.covers(step) && grid.in_time() && now >= collection.next) {
      collection.next = now + grid.every.time * stretch;
      hit = true;
    }
    if (hit) mask |= CollectionMask{1} << i;
  }
  return mask;
}

StatisticMask CapturePlan::statistics_of(CollectionMask collections) const {
  StatisticMask mask = 0;
  for (std::size_t i = 0; i < state_->collections.size(); ++i) {
    if ((collections >> i & 1U) != 0) mask |= state_->collections[i].statistics;
  }
  return mask;
}

CollectionMask CapturePlan::raw_of(CollectionMask collections) const {
  CollectionMask mask = 0;
  for (std::size_t i = 0; i < state_->collections.size(); ++i) {
    const State::Collection& collection = state_->collections[i];
    if (collection.config.raw || collection.asked_raw) mask |= CollectionMask{1} << i;
  }
  return mask & collections;
}

const StatisticRequests& CapturePlan::requests() const { return state_->requests; }

std::int64_t CapturePlan::smallest_every() const {
  std::int64_t smallest = 0;
  for (const State::Collection& collection : state_->collections) {
    const Every& every = collection.grid(Mode::train).every;
    const bool even = every.time.count() == 0 && every.per_decade == 0;
    const auto offer = [&](std::int64_t steps) {
      smallest = smallest == 0 ? steps : std::min(smallest, steps);
    };
    if (even) offer(every.steps);
    for (const SaveGrid& one : collection.dense) {
      if (one.end_step == SaveRule::kNoEnd) offer(one.every.steps);
    }
  }
  return std::max<std::int64_t>(smallest, 1);
}

// Of several askers the densest grid at each step. False: it cannot be given.
bool CapturePlan::State::Collection::extend_grid(const SaveRule& save, bool& changed) {
  const Every& asked = *save.every;
  const Every& own = grid(Mode::train).every;
  if (asked.time > core::Duration{0} || asked.per_decade > 0) return false;
  if (own.time > core::Duration{0} || own.per_decade > 0 || asked.steps < own.steps) {
    dense.emplace_back().lay(save);
    changed = true;
  }
  return true;
}

std::vector<std::string> CapturePlan::extend(const CollectionConfig& wanted, bool& changed) {
  auto& all = state_->collections;
  State::Collection* at = state_->find(wanted.name);
  if (at == nullptr) {
    State::Collection added;
    added.config = built_in(wanted.name);
    if (added.config.roles.empty() || all.size() >= 63) return {wanted.name};
    added.added = true;
    if (auto ok = added.understand(state_->config, state_->requests); !ok) return {wanted.name};
    all.push_back(std::move(added));
    at = &all.back();
    changed = true;
  } else if (!std::exchange(at->active, true)) {
    changed = true;
  }
  std::vector<std::string> refused;
  if (wanted.save.every && !at->extend_grid(wanted.save, changed)) {
    refused.push_back(wanted.name + " every " + to_text(*wanted.save.every));
  }
  for (const std::string& statistic : wanted.statistics.value_or(std::vector<std::string>{})) {
    const auto asked = core::parse_statistic(statistic);
    const StatisticMask given = asked ? state_->requests.bit(*asked) : 0;
    if (given == 0) refused.push_back(wanted.name + "/" + statistic);
    changed = changed || (given & ~at->statistics) != 0;
    at->statistics |= given;
  }
  if (wanted.raw && !at->config.raw) {
    if (!state_->config.raw.on_request) {
      refused.push_back(wanted.name + "/raw");
    } else if (!std::exchange(at->asked_raw, true)) {
      changed = true;
    }
  }
  return refused;
}

void CapturePlan::restore() {
  for (State::Collection& collection : state_->collections) {
    collection.dense.clear();
    collection.asked_raw = false;
    collection.statistics = collection.own_statistics;
    collection.active = !collection.added;
  }
}

core::Status CapturePlan::define(const std::vector<CollectionConfig>& collections) {
  std::vector<State::Collection> made(collections.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i].config = collections[i];
    complete(made[i].config);
    if (auto ok = made[i].understand(state_->config, state_->requests); !ok) return ok;
  }
  if (state_->collections.size() + made.size() > 63) {
    return core::invalid_argument("more than 63 collections");
  }
  for (State::Collection& collection : made) {
    if (State::Collection* at = state_->find(collection.config.name)) {
      *at = std::move(collection);
    } else {
      state_->collections.push_back(std::move(collection));
    }
  }
  return core::ok();
}

std::vector<std::pair<const CollectionConfig*, CollectionMask>> CapturePlan::all() const {
  std::vector<std::pair<const CollectionConfig*, CollectionMask>> out;
  for (std::size_t i = 0; i < state_->collections.size(); ++i) {
    if (state_->collections[i].active) {
      out.emplace_back(&state_->collections[i].config, CollectionMask{1} << i);
    }
  }
  return out;
}

std::string CapturePlan::workers() const { return state_->config.workers; }
const CaptureConfig& CapturePlan::config() const { return state_->config; }

Value CapturePlan::describe() const {
  core::ValueMap collections;
  for (const State::Collection& collection : state_->collections) {
    core::ValueList statistics;
    for (std::string& text : state_->requests.texts(collection.statistics)) {
      statistics.emplace_back(std::move(text));
    }
    core::ValueMap body{{"every", to_text(collection.grid(Mode::train).every)},
                        {"statistics", std::move(statistics)}};
    if (collection.config.raw || collection.asked_raw) body.emplace_back("raw", true);
    for (const Mode mode : {Mode::global, Mode::eval, Mode::predict}) {
      const std::string own = to_text(collection.grid(mode).every);
      if (own == to_text(collection.grid(Mode::train).every)) continue;
      body.emplace_back(std::string(core::to_string(mode)), core::ValueMap{{"every", own}});
    }
    collections.emplace_back(collection.config.name, std::move(body));
  }
  return core::ValueMap{{"every", to_text(state_->config.every)},
                        {"scalars", to_text(state_->config.scalars)},
                        {"workers", state_->config.workers},
                        {"collections", std::move(collections)}};
}

}  // namespace tocsin::hook
