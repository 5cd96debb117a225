#include "collectors/hook/capture/capture.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/fields/words.h"
#include "core/statistics.h"
#include "core/text.h"
#include "core/units.h"

namespace tocsin::hook {
namespace {

using core::Mode;
using core::Value;

std::optional<Every> every_from(const Value& value) {
  if (const auto* steps = core::as<std::int64_t>(value)) {
    return parse_every(std::to_string(*steps));
  }
  if (const auto* text = core::as<std::string>(value)) return parse_every(*text);
  return std::nullopt;
}

bool texts_from(const Value& value, std::vector<std::string>& out) {
  if (const auto* text = core::as<std::string>(value)) {
    out = {*text};
    return true;
  }
  const auto* list = core::as<core::ValueList>(value);
  if (list == nullptr) return false;
  out.clear();
  for (const Value& item : *list) {
    const auto* text = core::as<std::string>(item);
    if (text == nullptr) return false;
    out.push_back(*text);
  }
  return true;
}

bool integers_from(const Value& value, std::vector<std::int64_t>& out) {
  const auto* list = core::as<core::ValueList>(value);
  if (list == nullptr) return false;
  out.clear();
  for (const Value& item : *list) {
    const auto* number = core::as<std::int64_t>(item);
    if (number == nullptr || *number < 0) return false;
    out.push_back(*number);
  }
  return true;
}

class CollectionReader {
 public:
  CollectionReader(config::Reader& in, CollectionConfig& out) : in_(in), out_(out) {}

  void read(const core::ValueMap& body) {
    for (const auto& [key, value] : body) {
      if (!read_key(key, value)) wrong(key, value);
    }
  }

 private:
  bool read_key(const std::string& key, const Value& value) {
    bool known = true;
    bool ok = read_rule(key, value, out_.save, known);
    if (known) return ok;
    if (const auto mode = core::mode_from(key)) return read_mode(*mode, value);
    if (key == "include") return texts_from(value, out_.include);
    if (key == "exclude") return texts_from(value, out_.exclude);
    if (key == "roles") return texts_from(value, out_.roles);
    if (key == "modes") return texts_from(value, out_.modes);
    if (key == "statistics") {
      ok = texts_from(value, out_.statistics.emplace());
      for (const std::string& statistic : *out_.statistics) check_statistic(statistic);
      return ok;
    }
    if (key == "raw" || key == "shape") {
      const auto* on = core::as<bool>(value);
      if (on != nullptr && key == "raw") out_.raw = *on;
      return on != nullptr;
    }
    unknown(key, {"every", "include", "exclude", "roles", "modes", "start_step", "end_step",
                  "steps", "statistics", "raw", "shape", "train", "eval", "predict", "global"});
    return true;
  }

  // The keys that may stand under a mode, too. `known`: it is one of them.
  static bool read_rule(const std::string& key, const Value& value, SaveRule& rule, bool& known) {
    if (key == "every") {
      rule.every = every_from(value);
      return rule.every.has_value();
    }
    if (key == "start_step") return step(value, rule.start_step.emplace());
    if (key == "end_step") {
      rule.end_step = SaveRule::kNoEnd;
      return value.is_null() || step(value, *rule.end_step);
    }
    if (key == "steps") return integers_from(value, rule.steps.emplace());
    known = false;
    return true;
  }

  bool read_mode(core::Mode mode, const Value& value) {
    const auto* body = core::as<core::ValueMap>(value);
    if (body == nullptr) return false;
    for (const auto& [key, item] : *body) {
      bool known = true;
      const bool ok = read_rule(key, item, out_.save_in[static_cast<std::size_t>(mode)], known);
      if (!known) unknown(key, {"every", "start_step", "end_step", "steps"});
      if (!ok) wrong(std::string(core::to_string(mode)) + "." + key, item);
    }
    return true;
  }

  void unknown(const std::string& key, const std::vector<std::string>& keys) {
    const std::string near = core::nearest(key, keys);
    in_.error("collections", out_.name + ": unknown key " + key +
                                 (near.empty() ? "" : "; did you mean " + near + "?"));
  }

  void wrong(const std::string& key, const Value& value) {
    in_.error("collections",
              out_.name + "." + key + ": " + core::to_json(value) + " is not what this key takes");
  }

  // Not an error: a plan may ask for more than a client of another version gives.
  void check_statistic(const std::string& text) {
    const auto asked = core::parse_statistic(text);
    if (!asked) {
      in_.warning("collections", out_.name + ": " + asked.error().message);
    } else if (!gives_statistic(asked->word)) {
      std::string given;
      for (const std::string& word : given_requests()) {
        given += (given.empty() ? "`" : ", `") + word + "`";
      }
      in_.warning("collections", out_.name + ": statistic " + text +
                                     " is not given by this client; it gives " + given);
    }
  }

  static bool step(const Value& value, std::int64_t& out) {
    const auto* number = core::as<std::int64_t>(value);
    if (number == nullptr || *number < 0) return false;
    out = *number;
    return true;
  }

  config::Reader& in_;
  CollectionConfig& out_;
};

// What editors check; read_every() and read_collections() say the same in words.
constexpr std::string_view kGrid =
    R"({"anyOf": [{"type": "integer", "minimum": 1},
                  {"type": "string", "pattern": "^[1-9][0-9]*( *steps?| *per decade)?$|^([0-9.]+(ns|us|ms|s|m|h|d|w))+$|\\$\\{"}]})";
constexpr std::string_view kTexts = R"({"type": ["string", "array"], "items": {"type": "string"}})";

std::string grid_schema() {
  const std::string grid(kGrid);
  return R"({"anyOf": [)" + grid + R"(, {"type": "object", "additionalProperties": false,
           "properties": {"train": )" +
         grid + R"(, "eval": )" + grid + R"(, "predict": )" + grid + R"(, "global": )" + grid +
         "}}]}";
}

/// A list of the words of an enumeration.
template <typename E>
std::string list_of() {
  core::ValueList words;
  words.reserve(std::size(core::Words<E>::kAll));
  for (const E value : core::Words<E>::kAll) words.emplace_back(std::string(to_string(value)));
  return R"({"type": "array", "items": {"enum": )" + core::to_json(std::move(words)) + "}}";
}

std::string collections_schema() {
  const std::string grid(kGrid);
  const std::string texts(kTexts);
  const std::string step = R"({"type": "integer", "minimum": 0})";
  const std::string roles = list_of<core::Role>();
  const std::string modes = list_of<core::Mode>();
  core::ValueList words;
  for (std::string& word : core::statistic_requests()) words.emplace_back(std::move(word));
  const std::string statistics = R"({"type": ["string", "array"], "items": {"anyOf": [{"enum": )" +
                                 core::to_json(std::move(words)) +
                                 R"(}, {"type": "string", "pattern": "^[a-z_]+\\(.*\\)$"}]}})";
  const std::string rule = R"("every": )" + grid + R"(, "start_step": )" + step +
                           R"(, "end_step": {"type": ["integer", "null"], "minimum": 0},
        "steps": {"type": "array", "items": )" +
                           step + "}";
  std::string in_modes;
  for (const Mode mode : core::Words<Mode>::kAll) {
    in_modes += ", \"" + std::string(core::to_string(mode)) +
                R"(": {"type": "object", "additionalProperties": false, "properties": {)" + rule +
                "}}";
  }
  return R"({"anyOf": [{"type": "array", "items": {"type": "string"}},
    {"type": "object", "additionalProperties": {"type": ["object", "null"],
      "additionalProperties": false, "properties": {)" +
         rule + in_modes + R"(, "include": )" + texts + R"(, "exclude": )" + texts + R"(,
        "roles": {"anyOf": [{"type": "string"}, )" +
         roles + R"(]},
        "modes": {"anyOf": [{"type": "string"}, )" +
         modes + R"(]},
        "statistics": )" +
         statistics + R"(, "raw": {"type": "boolean"}, "shape": {"type": "boolean"}
      }}}]})";
}

void read_collections(config::Reader& in, const Value& value, CaptureConfig& cfg) {
  std::vector<CollectionConfig> collections;
  if (const auto* list = core::as<core::ValueList>(value)) {
    for (const Value& item : *list) {
      const auto* name = core::as<std::string>(item);
      if (name == nullptr) {
        in.error("collections", "a list holds names of collections; give bodies as a map");
        return;
      }
      collections.emplace_back().name = *name;
    }
  } else if (const auto* map = core::as<core::ValueMap>(value)) {
    for (const auto& [name, body] : *map) {
      CollectionConfig& collection = collections.emplace_back();
      collection.name = name;
      if (body.is_null()) continue;
      if (const auto* keys = core::as<core::ValueMap>(body)) {
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

// "; write 10s" where the value is a time in other words.
std::string hint(const Value& value) {
  const auto* text = std::get_if<std::string>(&value.storage());
  const std::string meant = text == nullptr ? std::string() : core::duration_meant(*text);
  return meant.empty() ? meant : "; write " + meant;
}

void read_every(config::Reader& in, const Value& value, CaptureConfig& cfg) {
  const auto* modes = core::as<core::ValueMap>(value);
  if (modes == nullptr) {
    if (auto every = every_from(value)) {
      cfg.every = *every;
    } else {
      in.error(
          "every",
          "expected `10 steps`, `8 per decade`, a duration such as 30s, or {train: …, eval: …}" +
              hint(value));
    }
    return;
  }
  for (const auto& [name, text] : *modes) {
    const auto every = every_from(text);
    const auto mode = core::mode_from(name);
    if (!every || !mode) {
      in.error("every", name +
                            ": expected train, eval, predict or global with `10 steps`, "
                            "`8 per decade` or a duration" +
                            hint(text));
    } else if (*mode == Mode::train) {
      cfg.every = *every;
    } else {
      cfg.every_in[static_cast<std::size_t>(*mode)] = *every;
    }
  }
}

core::Value texts_to(const std::vector<std::string>& texts) {
  core::ValueList out;
  out.reserve(texts.size());
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

void write_rule(const SaveRule& rule, core::ValueMap& out) {
  if (rule.every) out.emplace_back("every", to_text(*rule.every));
  if (rule.start_step) out.emplace_back("start_step", *rule.start_step);
  if (rule.end_step) {
    out.emplace_back("end_step", *rule.end_step == SaveRule::kNoEnd ? Value() : *rule.end_step);
  }
  if (!rule.steps) return;
  core::ValueList steps;
  for (const std::int64_t step : *rule.steps) steps.emplace_back(step);
  out.emplace_back("steps", std::move(steps));
}

}  // namespace

const Every& CaptureConfig::every_of(Mode mode) const {
  const auto own = [this](Mode of) -> const std::optional<Every>& {
    return every_in[static_cast<std::size_t>(of)];
  };
  if (own(mode)) return *own(mode);
  return mode == Mode::predict && own(Mode::eval) ? *own(Mode::eval) : every;
}

core::Value to_value(const CollectionConfig& collection) {
  core::ValueMap out;
  write_rule(collection.save, out);
  for (const Mode mode : core::Words<Mode>::kAll) {
    core::ValueMap body;
    write_rule(collection.save_in[static_cast<std::size_t>(mode)], body);
    if (!body.empty()) out.emplace_back(std::string(core::to_string(mode)), std::move(body));
  }
  const auto list = [&](const char* key, const std::vector<std::string>& texts) {
    if (!texts.empty()) out.emplace_back(key, texts_to(texts));
  };
  list("include", collection.include);
  list("exclude", collection.exclude);
  list("roles", collection.roles);
  list("modes", collection.modes);
  if (collection.statistics) out.emplace_back("statistics", texts_to(*collection.statistics));
  if (collection.raw) out.emplace_back("raw", true);
  return out;
}

void read(config::Reader& in, CaptureConfig& cfg) {
  Value every;
  in.any("every", every,
         "grid of tensors: `10 steps`, `8 per decade`, a duration, or {train: …, eval: …}",
         grid_schema());
  if (!every.is_null()) read_every(in, every, cfg);
  Value scalars;
  in.any("scalars", scalars, "grid of logged scalars", kGrid);
  if (!scalars.is_null()) {
    if (auto parsed = every_from(scalars)) {
      cfg.scalars = *parsed;
    } else {
      in.error("scalars", "expected `1 step` or a duration such as 1s" + hint(scalars));
    }
  }
  in.optional("workers", cfg.workers, config::one_of({"auto", "one", "all"}),
              "whose tensors are captured; auto: replicated ones from rank 0, shards from all");
  in.optional("step_by", cfg.step_by,
              "whose updates are the steps of training, of several optimizers in one loop: "
              "first_optimizer, the name that one was watched by, or manual (hook.step())");
  read_phases(in, cfg.phases);
  Value overhead;
  in.any("overhead", overhead, "share of the step time that the hook may take, `1%` or 0.01",
         R"({"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                       {"type": "string", "pattern": "^((?=.*[1-9])(0*[0-9]{0,2}\\.?[0-9]*|0*100\\.?0*)%|[0-9.]+[eE]-[0-9]+)$|\\$\\{"}]})");
  if (const auto* ratio = core::as<double>(overhead)) {
    cfg.overhead = *ratio;
  } else if (const auto* text = core::as<std::string>(overhead)) {
    double percent = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), percent);
    if (error != std::errc() || std::string_view(end) != "%") {
      in.error("overhead", "expected a percentage such as 1%");
    } else {
      cfg.overhead = percent / 100;
    }
  } else if (const auto* whole = core::as<std::int64_t>(overhead)) {
    cfg.overhead = static_cast<double>(*whole);
  } else if (!overhead.is_null()) {
    in.error("overhead", "expected a share such as 1% or 0.01");
  }
  if (!(cfg.overhead > 0 && cfg.overhead <= 1))
    in.error("overhead", "expected more than 0, at most 100%");
  config::Bytes delta{cfg.delta_memory};
  in.optional("delta_memory", delta, "memory for copies of previous values, per process");
  cfg.delta_memory = delta.count;
  Value collections;
  in.any("collections", collections,
         "names of collections, or a map from name to {every, include, exclude, roles, modes, "
         "start_step, end_step, steps, statistics, raw}, and {every, start_step, end_step, steps} "
         "by mode",
         collections_schema());
  if (!collections.is_null()) read_collections(in, collections, cfg);
  in.optional("dry_run", cfg.dry_run, "measures, and sends nothing");
  in.optional("ledger", cfg.ledger, "send the ledger of loss calls, whatever the grids");
  in.section("raw", "elements of the collections with `raw: true` (docs/raw-tensors.md)",
             [&](config::Reader& section) { read(section, cfg.raw); });
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
    if (item.grade == config::Grade::warning) base.warnings.push_back(item.message);
  }
  if (!document || !problems.empty()) return core::invalid_argument("capture: " + problems);
  return base;
}

}  // namespace tocsin::hook
