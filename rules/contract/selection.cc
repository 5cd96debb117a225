// Selection by role, collection and pattern, and the shared parameters that make one.
#include "rules/contract/selection.h"

#include <re2/re2.h>

#include <algorithm>

#include "core/collections.h"
#include "core/text.h"
#include "rules/contract/items.h"

namespace tocsin::rules {
namespace {

std::string meant(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = core::nearest(word, known);
  return near.empty() ? "" : "; did you mean \"" + near + "\"?";
}

std::uint8_t mask_of(config::Reader& in, const std::vector<std::string>& names) {
  std::uint8_t mask = 0;
  for (const std::string& name : names) {
    if (const auto mode = core::mode_from(name)) {
      mask = static_cast<std::uint8_t>(mask | mode_bit(*mode));
    } else {
      in.error("modes", "unknown mode \"" + name + "\": expected global, train, eval or predict" +
                            meant(name, {"global", "train", "eval", "predict"}));
    }
  }
  return mask;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  return out;
}

// Whether a tensor goes into an operator or comes out of it.
bool is_activation(core::Role which, core::Role role, const Name& name) {
  if (role == which) return true;
  if (role != core::Role::other) return false;
  return name.text.find(which == core::Role::activation_in ? "input" : "output") !=
         std::string::npos;
}

}  // namespace

struct Selection::Patterns {
  std::vector<std::unique_ptr<re2::RE2>> compiled;
};

Selection::Selection() = default;
Selection::~Selection() = default;
Selection::Selection(Selection&&) noexcept = default;
Selection& Selection::operator=(Selection&&) noexcept = default;

void Selection::add_collection(std::string_view name) {
  if (name == "all") all_ = true;
  if (const core::Collection* known = core::find_collection(name)) {
    for (const core::Role role : known->roles) add_role(role);
  }
  collections_.emplace_back(name);
}

bool Selection::add_regex(const std::string& pattern, std::string& error) {
  auto compiled = std::make_unique<re2::RE2>(pattern, re2::RE2::Quiet);
  if (!compiled->ok()) {
    error = compiled->error();
    return false;
  }
  if (!patterns_) patterns_ = std::make_unique<Patterns>();
  patterns_->compiled.push_back(std::move(compiled));
  return true;
}

void Selection::add_operator(core::Role role, std::string_view op_type) {
  operators_.emplace_back(role, lower(op_type));
}

bool Selection::empty() const noexcept {
  return !all_ && roles_ == 0 && collections_.empty() && !patterns_ && operators_.empty();
}

Match Selection::matches(core::Role role, const Name* name) const {
  const Match match = selects(role, name);
  if ((least_rank_ == 0 && without_.empty()) || match == Match::no) return match;
  // Without a name its shape is unknown too. What is left out by name is judged until it has one.
  if (name == nullptr) return least_rank_ == 0 ? match : Match::unknown;
  if (!without_.empty() && name->text.ends_with(without_)) return Match::no;
  return name->shape.size() < least_rank_ ? Match::no : match;
}

Match Selection::selects(core::Role role, const Name* name) const {
  if (all_ || (roles_ & role_bit(role)) != 0) return Match::yes;
  if (collections_.empty() && !patterns_ && operators_.empty()) return Match::no;
  if (name == nullptr) return Match::unknown;
  for (const std::string& collection : collections_) {
    if (std::find(name->collections.begin(), name->collections.end(), collection) !=
        name->collections.end()) {
      return Match::yes;
    }
  }
  if (patterns_) {
    for (const auto& pattern : patterns_->compiled) {
      if (re2::RE2::PartialMatch(name->text, *pattern)) return Match::yes;
    }
  }
  for (const auto& [which, op_type] : operators_) {
    if (is_activation(which, role, *name) && lower(name->op_type) == op_type) return Match::yes;
  }
  return Match::no;
}

void read_common(config::Reader& in, const Defaults& defaults, Common& common,
                 Selection& selection) {
  common.start_step = defaults.start_step;
  if (defaults.selects) {
    read_items(in, "collection_names", common.collection_names,
               "tensors of these collections, in addition to tensor_regex");
    read_items(in, "tensor_regex", common.tensor_regex,
               "tensors whose name contains a match of one of these patterns (RE2)");
    in.optional("modes", common.modes,
                "modes to judge: global, train, eval, predict; empty = the rule's own");
    in.choices("modes", {"global", "train", "eval", "predict"});
    in.optional("workers", common.workers, "names of the workers to judge; empty or all = all");
    if (defaults.has_start_step) {
      in.optional("start_step", common.start_step, config::at_least(std::int64_t{0}),
                  "first mode step to judge");
      in.optional("end_step", common.end_step, config::if_given(config::at_least(std::int64_t{0})),
                  "first mode step that is not judged any more");
      if (common.end_step && *common.end_step <= common.start_step) {
        in.warning("end_step", "this rule judges nothing: its first step is " +
                                   std::to_string(common.start_step) +
                                   ", and end_step is not after it");
      }
    }
  }
  common.min_hits = defaults.min_hits;
  in.optional("min_hits", common.min_hits, config::at_least(std::uint32_t{1}),
              "hits in a row before it raises an issue");
  in.optional("clear_after", common.clear_after, config::between(std::uint32_t{1}, 65535U),
              "healthy evaluations in a row that resolve an issue");
  in.optional("cooldown", common.cooldown,
              "least time between two reports of an issue that continues");
  in.optional("max_open_units", common.max_open_units,
              config::if_given(config::at_least(std::uint32_t{1})),
              "largest number of open issues per kind and worker; further hits are only counted "
              "(default: engine.max_open_units)");
  in.optional("severity", common.severity, "info, warning, error or critical");
  in.choices("severity", {"info", "warning", "error", "critical"});
  if (common.severity && !core::severity_from(*common.severity)) {
    in.error("severity", "expected info, warning, error or critical" +
                             meant(*common.severity, {"info", "warning", "error", "critical"}));
  }
  common.mode_mask = common.modes.empty() ? defaults.modes : mask_of(in, common.modes);
  if (common.workers.size() == 1 && common.workers[0] == "all") common.workers.clear();
  for (const std::string& name : common.collection_names) selection.add_collection(name);
  for (const std::string& pattern : common.tensor_regex) {
    std::string problem;
    if (!selection.add_regex(pattern, problem)) {
      in.error("tensor_regex", "\"" + pattern + "\" is no regular expression: " + problem);
    }
  }
  if (!selection.empty() || in.describing()) return;
  if (defaults.needs_selector) {
    in.error("collection_names",
             "this rule needs collection_names or tensor_regex to know which tensors to judge");
  }
  if (defaults.everything) selection.add_all();
  for (const core::Role role : defaults.roles) selection.add_role(role);
  for (const std::string& pattern : defaults.patterns) {
    std::string problem;
    selection.add_regex(pattern, problem);
  }
}

}  // namespace tocsin::rules
