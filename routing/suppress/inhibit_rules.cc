#include "routing/suppress/inhibit_rules.h"

#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "routing/tree/matchers.h"
#include "routing/tree/read_matchers.h"

namespace tocsin::routing {
namespace {

/// Times and these have a sum.
constexpr core::Duration kLongest = std::chrono::hours(24 * 365);

std::vector<std::string> read_side(config::Reader& in, std::string_view key,
                                   std::string_view help) {
  auto texts = read_matchers(in, key, help);
  if (in.describing()) return texts;
  if (!in.has(key)) {
    in.error("", std::string(key) + " is missing: a text or a list of `name OP \"value\"`");
    return texts;
  }
  const auto parsed = Matchers::parse(texts);
  if (parsed && parsed->empty()) {
    in.error(key, "expected at least one matcher; for every issue write 'rule=~\".+\"'");
  }
  return texts;
}

void read_equal(config::Reader& in, std::vector<std::string>& equal) {
  in.optional("equal", equal,
              "labels whose values must be equal for source and target; a missing label counts as "
              "empty");
  if (in.describing()) return;
  if (!in.has("equal")) {
    in.warning("",
               "without `equal` one source inhibits the issues of every run: name labels such "
               "as run_uid, or write `equal: []` if you mean that");
    return;
  }
  std::set<std::string> seen;
  for (const std::string& label : equal) {
    if (label.empty()) in.error("equal", "a label name must not be empty");
    if (!seen.insert(label).second) in.error("equal", "'" + label + "' is named twice");
  }
}

void warn_of_itself(const config::Reader& in, const InhibitRule& rule) {
  const auto sources = Matchers::parse(rule.source_matchers);
  const auto targets = Matchers::parse(rule.target_matchers);
  if (!sources || !targets || sources->empty()) return;
  if (sources->canonical() != targets->canonical()) return;
  in.warning("target_matchers",
             "this rule inhibits nothing: sources and targets are the same issues, and an issue on "
             "both sides inhibits no other such issue; exclude the sources from the targets");
}

}  // namespace

void read_inhibit_rules(config::Reader& root, std::vector<InhibitRule>& rules) {
  std::map<std::string, config::Location> names;
  root.list("inhibit_rules", "rules that mute issues while others fire", [&](config::Reader& in) {
    InhibitRule rule;
    in.required("name", rule.name, config::not_empty(),
                "its unique name, shown as the reason of a suppressed issue");
    rule.source_matchers = read_side(in, "source_matchers", "issues that inhibit while they fire");
    rule.target_matchers = read_side(in, "target_matchers", "issues that are inhibited");
    read_equal(in, rule.equal);
    in.optional("source_min_age", rule.source_min_age,
                config::between(core::Duration::zero(), kLongest),
                "how long a source must have fired before it inhibits");
    in.optional("hold_after", rule.hold_after, config::between(core::Duration::zero(), kLongest),
                "how long a source goes on inhibiting after it has ended");
    if (in.describing()) return;
    const auto [first, fresh] = names.try_emplace(rule.name, in.location("name"));
    if (!fresh && !rule.name.empty()) {
      in.error("name", "the rule at line " + std::to_string(first->second.line) + " is called '" +
                           rule.name + "' already");
    }
    warn_of_itself(in, rule);
    rules.push_back(std::move(rule));
  });
}

}  // namespace tocsin::routing
