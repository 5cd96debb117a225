#include "app/client/capture.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/text.h"

namespace tocsin::app::client {
namespace {

using core::Mode;
using core::Role;
using core::Value;

std::optional<Every> every_from(const Value& value) {
  if (const auto* steps = std::get_if<std::int64_t>(&value.storage())) {
    return parse_every(std::to_string(*steps));
  }
  if (const auto* text = std::get_if<std::string>(&value.storage())) return parse_every(*text);
  return std::nullopt;
}

bool texts_from(const Value& value, std::vector<std::string>& out) {
  if (const auto* text = std::get_if<std::string>(&value.storage())) {
    out = {*text};
    return true;
  }
  const auto* list = std::get_if<core::ValueList>(&value.storage());
  if (list == nullptr) return false;
  out.clear();
  for (const Value& item : *list) {
    const auto* text = std::get_if<std::string>(&item.storage());
    if (text == nullptr) return false;
    out.push_back(*text);
  }
  return true;
}

bool integers_from(const Value& value, std::vector<std::int64_t>& out) {
  const auto* list = std::get_if<core::ValueList>(&value.storage());
  if (list == nullptr) return false;
  out.clear();
  for (const Value& item : *list) {
    const auto* number = std::get_if<std::int64_t>(&item.storage());
    if (number == nullptr || *number < 0) return false;
    out.push_back(*number);
  }
  return true;
}

// Statistics beyond the base columns that this client can give.
constexpr std::string_view kDelta = "delta";

class CollectionReader {
 public:
  CollectionReader(config::Reader& in, CollectionConfig& out) : in_(in), out_(out) {}

  void read(const core::ValueMap& body) {
    for (const auto& [key, value] : body) read_key(key, value);
  }

 private:
  void read_key(const std::string& key, const Value& value) {
    bool ok = true;
    if (key == "every") {
      out_.every = every_from(value);
      ok = out_.every.has_value();
    } else if (key == "include") {
      ok = texts_from(value, out_.include);
    } else if (key == "exclude") {
      ok = texts_from(value, out_.exclude);
    } else if (key == "roles") {
      ok = texts_from(value, out_.roles);
    } else if (key == "modes") {
      ok = texts_from(value, out_.modes);
    } else if (key == "start_step") {
      ok = step(value, out_.start_step);
    } else if (key == "end_step") {
      out_.end_step.reset();
      if (!value.is_null()) ok = step(value, out_.end_step.emplace());
    } else if (key == "steps") {
      ok = integers_from(value, out_.steps);
    } else if (key == "statistics") {
      ok = texts_from(value, out_.statistics.emplace());
      for (const std::string& statistic : *out_.statistics) {
        if (statistic != kDelta) {
          in_.warning("collections", out_.name + ": statistic " + statistic +
                                         " is not given by this client; `delta` is");
        }
      }
    } else if (key == "raw" || key == "shape") {
      const auto* on = std::get_if<bool>(&value.storage());
      ok = on != nullptr;
      if (ok && key == "raw" && *on) {
        in_.warning("collections", out_.name + ": raw tensors are not sent by this client");
      }
    } else {
      const std::string near =
          core::nearest(key, {"every", "include", "exclude", "roles", "modes", "start_step",
                              "end_step", "steps", "statistics", "raw", "shape"});
      in_.error("collections", out_.name + ": unknown key " + key +
                                   (near.empty() ? "" : "; did you mean " + near + "?"));
    }
    if (!ok)
      in_.error("collections", out_.name + "." + key + ": " + core::to_json(value) +
                                   " is not what this key takes");
  }

  static bool step(const Value& value, std::int64_t& out) {
    const auto* number = std::get_if<std::int64_t>(&value.storage());
    if (number == nullptr || *number < 0) return false;
    out = *number;
    return true;
  }

  config::Reader& in_;
  CollectionConfig& out_;
};

void read_collections(config::Reader& in, const Value& value, CaptureConfig& cfg) {
  std::vector<CollectionConfig> collections;
  if (const auto* list = std::get_if<core::ValueList>(&value.storage())) {
    for (const Value& item : *list) {
      const auto* name = std::get_if<std::string>(&item.storage());
      if (name == nullptr) {
        in.error("collections", "a list holds names of collections; give bodies as a map");
        return;
      }
      collections.emplace_back().name = *name;
    }
  } else if (const auto* map = std::get_if<core::ValueMap>(&value.storage())) {
    for (const auto& [name, body] : *map) {
      CollectionConfig& collection = collections.emplace_back();
      collection.name = name;
      if (body.is_null()) continue;
      if (const auto* keys = std::get_if<core::ValueMap>(&body.storage())) {
        CollectionReader(in, collection).read(*keys);
      } else {
        in.error("collections", name + ": expected a map or nothing");
      }
    }
  } else {
    in.error("collections", "expected a list of names or a map from name to settings");
    return;
  }
  cfg.collections = std::move(collections);
}

void read_every(config::Reader& in, const Value& value, CaptureConfig& cfg) {
  const auto* modes = std::get_if<core::ValueMap>(&value.storage());
  if (modes == nullptr) {
    if (auto every = every_from(value)) {
      cfg.every = *every;
    } else {
      in.error("every", "expected `10 steps`, a duration, or {train: …, eval: …}");
    }
    return;
  }
  for (const auto& [mode, text] : *modes) {
    const auto every = every_from(text);
    if (!every || (mode != "train" && mode != "eval")) {
      in.error("every", mode + ": expected train and eval with `10 steps` or a duration");
    } else if (mode == "train") {
      cfg.every = *every;
    } else {
      cfg.every_eval = *every;
    }
  }
}

// The built-in collections that a training loop fills; patterns search (RE2 has no look-around).
CollectionConfig built_in(std::string_view name) {
  CollectionConfig out;
  out.name = std::string(name);
  if (name == "gradients") {
    out.roles = {"gradient"};
    out.modes = {"train"};
  } else if (name == "weights") {
    out.roles = {"weight"};
    out.statistics = std::vector<std::string>{std::string(kDelta)};
  } else if (name == "biases") {
    out.roles = {"bias"};
  } else if (name == "losses") {
    out.roles = {"loss"};
  } else if (name == "metrics") {
    out.roles = {"metric"};
  } else if (name == "inputs") {
    out.roles = {"input"};
  } else if (name == "outputs") {
    out.roles = {"label", "prediction", "output"};
  } else if (name == "layers") {
    out.roles = {"activation_in", "activation_out"};
  } else if (name == "all") {
    out.include = {".*"};
  }
  return out;
}

}  // namespace

std::optional<Every> parse_every(std::string_view text) {
  std::int64_t steps = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, steps);
  if (error == std::errc()) {
    std::string_view unit(end, static_cast<std::size_t>(last - end));
    while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
    if (unit.empty() || unit == "step" || unit == "steps") {
      return steps >= 1 ? std::optional<Every>({steps, core::Duration{0}}) : std::nullopt;
    }
  }
  const auto time = core::parse_duration(text);
  if (!time || *time <= core::Duration{0}) return std::nullopt;
  return Every{1, *time};
}

std::string to_text(const Every& every) {
  if (every.time > core::Duration{0}) return core::to_text(every.time);
  return std::to_string(every.steps) + (every.steps == 1 ? " step" : " steps");
}

void read(config::Reader& in, CaptureConfig& cfg) {
  Value every;
  in.any("every", every, "grid of tensors: `10 steps`, a duration, or {train: …, eval: …}");
  if (!every.is_null()) read_every(in, every, cfg);
  Value scalars;
  in.any("scalars", scalars, "grid of logged scalars");
  if (!scalars.is_null()) {
    if (auto parsed = every_from(scalars)) {
      cfg.scalars = *parsed;
    } else {
      in.error("scalars", "expected `1 step` or a duration");
    }
  }
  in.optional("workers", cfg.workers, config::one_of({"auto", "one", "all"}),
              "whose tensors are captured; auto: replicated ones from rank 0, shards from all");
  Value overhead;
  in.any("overhead", overhead, "share of the step time that the hook may take, `1%` or 0.01");
  if (const auto* ratio = std::get_if<double>(&overhead.storage())) {
    cfg.overhead = *ratio;
  } else if (const auto* text = std::get_if<std::string>(&overhead.storage())) {
    double percent = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), percent);
    if (error != std::errc() || std::string_view(end) != "%") {
      in.error("overhead", "expected a percentage such as 1%");
    } else {
      cfg.overhead = percent / 100;
    }
  } else if (const auto* whole = std::get_if<std::int64_t>(&overhead.storage())) {
    cfg.overhead = static_cast<double>(*whole);
  }
  if (!(cfg.overhead > 0 && cfg.overhead <= 1))
    in.error("overhead", "expected more than 0, at most 100%");
  config::Bytes delta{cfg.delta_memory};
  in.optional("delta_memory", delta, "memory for copies of previous values, per process");
  cfg.delta_memory = delta.count;
  Value collections;
  in.any("collections", collections,
         "names of collections, or a map from name to {every, include, exclude, roles, modes, "
         "start_step, end_step, steps, statistics}");
  if (!collections.is_null()) read_collections(in, collections, cfg);
  Value raw;
  in.any("raw", raw, "limits of raw tensors (not sent by this client)");
}

core::Result<CaptureConfig> parse_capture(std::string_view text, CaptureConfig base) {
  config::Diagnostics diagnostics;
  const auto document = config::Document::parse(
      text, "capture", [](const std::string&) { return std::optional<std::string>(); },
      diagnostics);
  if (document) document->read(diagnostics, [&](config::Reader& in) { read(in, base); });
  std::string problems;
  for (const auto& item : diagnostics.items()) {
    if (item.grade == config::Grade::error)
      problems += (problems.empty() ? "" : "; ") + item.message;
  }
  if (!document || !problems.empty()) return core::invalid_argument("capture: " + problems);
  return base;
}

struct CapturePlan::State {
  struct Collection {
    CollectionConfig config;
    Every every;
    Every every_eval;
    std::int64_t dense = 0;  // a command's grid; 0: none
    std::vector<std::unique_ptr<re2::RE2>> include;
    std::vector<std::unique_ptr<re2::RE2>> exclude;
    std::uint32_t roles = 0;     // bit per role; 0: by pattern only
    std::uint32_t modes = 0xff;  // bit per mode
    core::Duration next{0};      // of grids in time
    bool delta = false;

    [[nodiscard]] bool wants(std::string_view name, Role role) const {
      const re2::StringPiece text(name.data(), name.size());
      const auto hit = [&](const auto& pattern) { return re2::RE2::PartialMatch(text, *pattern); };
      if (std::any_of(exclude.begin(), exclude.end(), hit)) return false;
      if ((roles >> static_cast<unsigned>(role) & 1U) != 0) return true;
      return std::any_of(include.begin(), include.end(), hit);
    }
  };
  CaptureConfig config;
  std::vector<Collection> collections;
};

namespace {

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

core::Result<CapturePlan> CapturePlan::compile(const CaptureConfig& config) {
  auto state = std::make_unique<State>();
  state->config = config;
  std::vector<CollectionConfig> wanted = config.collections;
  if (wanted.empty()) {
    for (const char* name : {"gradients", "weights", "biases", "losses"}) {
      wanted.push_back(built_in(name));
    }
  }
  if (wanted.size() > 63) return core::invalid_argument("more than 63 collections");
  for (CollectionConfig& entry : wanted) {
    const CollectionConfig standard = built_in(entry.name);
    if (entry.include.empty() && entry.roles.empty()) {
      entry.include = standard.include;
      entry.roles = standard.roles;
    }
    if (entry.modes.empty()) entry.modes = standard.modes;
    if (!entry.statistics) entry.statistics = standard.statistics;
    State::Collection collection;
    collection.every = entry.every.value_or(config.every);
    collection.every_eval = entry.every.value_or(config.every_eval.value_or(config.every));
    const auto statistics = entry.statistics.value_or(std::vector<std::string>{});
    collection.delta = std::find(statistics.begin(), statistics.end(), kDelta) != statistics.end();
    if (auto ok = compile_patterns(entry.name, entry.include, collection.include); !ok) {
      return ok.error();
    }
    if (auto ok = compile_patterns(entry.name, entry.exclude, collection.exclude); !ok) {
      return ok.error();
    }
    for (const std::string& text : entry.roles) {
      const auto role = core::role_from(text);
      if (!role)
        return core::invalid_argument("collection " + entry.name + ": unknown role " + text);
      collection.roles |= 1U << static_cast<unsigned>(*role);
    }
    if (!entry.modes.empty()) collection.modes = 0;
    for (const std::string& text : entry.modes) {
      const auto mode = core::mode_from(text);
      if (!mode)
        return core::invalid_argument("collection " + entry.name + ": unknown mode " + text);
      collection.modes |= 1U << static_cast<unsigned>(*mode);
    }
    collection.config = std::move(entry);
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
  added.every = state_->config.every;
  added.every_eval = state_->config.every_eval.value_or(state_->config.every);
  all.push_back(std::move(added));
  return CollectionMask{1} << (all.size() - 1);
}

CollectionMask CapturePlan::due(Mode mode, std::int64_t step, std::int64_t stretch,
                                core::Duration now) {
  CollectionMask mask = 0;
  for (std::size_t i = 0; i < state_->collections.size(); ++i) {
    State::Collection& collection = state_->collections[i];
    if ((collection.modes >> static_cast<unsigned>(mode) & 1U) == 0) continue;
    const CollectionConfig& config = collection.config;
    const Every& every =
        mode == Mode::eval || mode == Mode::predict ? collection.every_eval : collection.every;
    bool hit = std::find(config.steps.begin(), config.steps.end(), step) != config.steps.end();
    const bool inside = step >= config.start_step && (!config.end_step || step < *config.end_step);
    if (inside && every.time > core::Duration{0}) {
      if (now >= collection.next) {
        collection.next = now + every.time * stretch;
        hit = true;
      }
    } else if (inside) {
      const std::int64_t grid =
          collection.dense > 0 ? std::min(collection.dense, every.steps) : every.steps;
      hit = hit || step % (grid * stretch) == 0;
    }
    if (hit) mask |= CollectionMask{1} << i;
  }
  return mask;
}

CollectionMask CapturePlan::with_delta() const {
  CollectionMask mask = 0;
  for (std::size_t i = 0; i < state_->collections.size(); ++i) {
    if (state_->collections[i].delta) mask |= CollectionMask{1} << i;
  }
  return mask;
}

std::int64_t CapturePlan::smallest_every() const {
  std::int64_t smallest = 0;
  for (const State::Collection& collection : state_->collections) {
    if (collection.every.time > core::Duration{0}) continue;
    const std::int64_t steps = collection.dense > 0
                                   ? std::min(collection.dense, collection.every.steps)
                                   : collection.every.steps;
    smallest = smallest == 0 ? steps : std::min(smallest, steps);
  }
  return std::max<std::int64_t>(smallest, 1);
}

bool CapturePlan::has(std::string_view name) const {
  return std::any_of(state_->collections.begin(), state_->collections.end(),
                     [&](const State::Collection& item) { return item.config.name == name; });
}

bool CapturePlan::densify(std::string_view name, std::int64_t every) {
  for (State::Collection& collection : state_->collections) {
    if (collection.config.name != name) continue;
    const bool denser = collection.every.time > core::Duration{0} || every < collection.every.steps;
    if (denser) collection.dense = std::max<std::int64_t>(every, 1);
    return denser;
  }
  return false;
}

void CapturePlan::restore() {
  for (State::Collection& collection : state_->collections) collection.dense = 0;
}

std::string CapturePlan::workers() const { return state_->config.workers; }
const CaptureConfig& CapturePlan::config() const { return state_->config; }

Value CapturePlan::describe() const {
  core::ValueMap collections;
  for (const State::Collection& collection : state_->collections) {
    core::ValueList statistics;
    if (collection.delta) statistics.emplace_back(std::string(kDelta));
    collections.emplace_back(collection.config.name,
                             core::ValueMap{{"every", to_text(collection.every)},
                                            {"statistics", std::move(statistics)}});
  }
  return core::ValueMap{{"every", to_text(state_->config.every)},
                        {"scalars", to_text(state_->config.scalars)},
                        {"workers", state_->config.workers},
                        {"collections", std::move(collections)}};
}

}  // namespace tocsin::app::client
