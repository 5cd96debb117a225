// Reads the section `route` (docs/configuration.md, docs/routing.md).
#include "routing/tree/route_config.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "core/text.h"
#include "core/units.h"
#include "routing/times/read_time_intervals.h"
#include "routing/tree/matchers.h"
#include "routing/tree/read_matchers.h"

namespace tocsin::routing {
namespace {

using core::Duration;
using core::Value;

std::optional<Duration> duration_of(const Value& value) {
  const auto* text = core::as<std::string>(value);
  return text == nullptr ? std::nullopt : core::parse_duration(*text);
}

// What read_repeat() takes, for editors.
constexpr std::string_view kRepeatSchema = R"({
  "anyOf": [
    {"type": "string", "pattern": "^([0-9.]+(ns|us|ms|s|m|h|d|w))+$|\\$\\{"},
    {"type": "array", "minItems": 1, "items": {
      "type": "object", "additionalProperties": false, "required": ["every"], "properties": {
        "until": {"type": "string", "pattern": "^([0-9.]+(ns|us|ms|s|m|h|d|w))+$|\\$\\{"},
        "every": {"type": "string", "pattern": "^([0-9.]+(ns|us|ms|s|m|h|d|w))+$|\\$\\{"}}}}]})";

// "; write 5m" where the value is a time in other words.
std::string hint(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value.storage())) {
    return core::duration_hint(*text);
  }
  const auto* number = std::get_if<std::int64_t>(&value.storage());
  return number == nullptr ? std::string() : core::duration_hint(std::to_string(*number));
}

/// {until: 1d, every: 4h}
std::optional<RepeatStep> step_of(const Value& value, std::string& problem) {
  const auto* map = core::as<core::ValueMap>(value);
  if (map == nullptr) {
    problem = "expected {until: 1d, every: 4h}; the last step only {every: 1d}";
    return std::nullopt;
  }
  RepeatStep step;
  step.every = Duration::zero();
  for (const auto& [name, item] : *map) {
    const auto duration = duration_of(item);
    if (name != "until" && name != "every") {
      const std::string near = core::nearest(name, {"until", "every"});
      problem = "unknown key '" + name + "'" +
                (near.empty() ? "; known are until, every" : "; did you mean '" + near + "'?");
      return std::nullopt;
    }
    if (!duration || *duration <= Duration::zero()) {
      problem = name + ": expected a duration greater than zero such as 4h" + hint(item);
      return std::nullopt;
    }
    if (name == "until") step.until = *duration;
    if (name == "every") step.every = *duration;
  }
  if (step.every == Duration::zero()) {
    problem = "every is missing";
    return std::nullopt;
  }
  return step;
}

void read_ladder(const config::Reader& in, const core::ValueList& list, RouteConfig& route) {
  std::vector<RepeatStep> steps;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string item = "item " + std::to_string(i + 1) + ": ";
    std::string problem;
    const auto step = step_of(list[i], problem);
    if (step && !step->until && i + 1 < list.size()) problem = "only the last step may lack until";
    if (step && step->until && !steps.empty() && *step->until <= *steps.back().until) {
      problem = "until must be greater than that of the step before";
    }
    if (!problem.empty()) {
      in.error("repeat_interval", item + problem);
      return;
    }
    steps.push_back(*step);
  }
  if (steps.empty()) {
    in.error("repeat_interval", "expected at least one step");
    return;
  }
  route.repeat_interval = std::move(steps);
}

void read_repeat(config::Reader& in, RouteConfig& route) {
  Value value;
  in.any(
      "repeat_interval", value,
      "time between repeats while something fires (default 4h), or a ladder by age of the oldest "
      "firing issue: [{until: 1d, every: 4h}, {every: 1d}]",
      kRepeatSchema);
  if (in.describing() || value.is_null()) return;
  if (const auto* list = core::as<core::ValueList>(value)) {
    read_ladder(in, *list, route);
    return;
  }
  const auto duration = duration_of(value);
  if (!duration || *duration <= Duration::zero()) {
    in.error("repeat_interval",
             "expected a duration greater than zero such as 4h, or a list of {until, every}" +
                 hint(value));
    return;
  }
  route.repeat_interval = std::vector<RepeatStep>{{std::nullopt, *duration}};
}

void read_grouping(config::Reader& in, RouteConfig& route) {
  std::vector<std::string> labels{"job", "run_uid"};
  in.optional("group_by", labels,
              "issues with equal values of these labels share a message; [\"...\"] = all labels, "
              "[] = one group; inherited");
  if (in.describing() || !in.has("group_by")) return;
  std::set<std::string> seen;
  for (const std::string& label : labels) {
    if (label.empty()) in.error("group_by", "a label name must not be empty");
    if (!seen.insert(label).second) in.error("group_by", "'" + label + "' is named twice");
  }
  if (seen.count("...") > 0 && seen.size() > 1) {
    in.error("group_by", "\"...\" means all labels and cannot be mixed with names");
  }
  route.group_by = std::move(labels);
}

/// Inherited durations: set only where the file does.
void read_duration(config::Reader& in, std::string_view key, std::optional<Duration>& out,
                   Duration fallback, bool zero_allowed, std::string_view help) {
  Duration value = fallback;
  if (zero_allowed) {
    in.optional(key, value, config::at_least(Duration::zero()), help);
  } else {
    in.optional(key, value, config::positive(), help);
  }
  if (!in.describing() && in.has(key)) out = value;
}

void read_timers(config::Reader& in, RouteConfig& route) {
  using namespace std::chrono_literals;
  read_duration(in, "group_wait", route.group_wait, 30s, true,
                "from the first issue of a group to its first message; inherited");
  read_duration(in, "group_interval", route.group_interval, 5min, false,
                "between looks at a group after its first message; inherited");
  read_repeat(in, route);
  in.optional("immediate_on", route.immediate_on,
              "matchers: a new issue that matches does not wait for group_interval");
  read_duration(in, "urgent_wait", route.urgent_wait, 2s, true,
                "from such an issue to the message; inherited");
  read_duration(in, "urgent_min_gap", route.urgent_min_gap, 30s, true,
                "least time between two messages of that kind; inherited");
  if (in.describing() || route.immediate_on.empty()) return;
  const auto parsed = Matchers::parse(route.immediate_on);
  if (!parsed) in.error("immediate_on", parsed.error().message);
}

/// What all nodes of one tree share while it is read.
struct TreeReader {
  const std::vector<std::string>& receivers;
  const std::vector<std::string>& intervals;
  std::map<std::string, config::Location> ids;
  const std::set<std::string> known{receivers.begin(), receivers.end()};

  void receiver(config::Reader& in, std::string_view key, const std::string& name) const {
    if (known.contains(name)) return;
    const std::string near = core::nearest(name, receivers);
    in.error(key, "no receiver is called '" + name + "'" +
                      (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }

  void read_receivers(config::Reader& in, RouteConfig& route, bool is_root) {
    std::string one;
    in.optional("receiver", one, "who is told; inherited, mandatory at the root");
    in.optional("receivers", route.receivers, "several who are told, instead of `receiver`");
    if (in.describing()) return;
    if (in.has("receiver") && in.has("receivers")) {
      in.error("receivers", "give either receiver or receivers");
    }
    for (const std::string& name : route.receivers) receiver(in, "receivers", name);
    if (in.has("receiver")) {
      receiver(in, "receiver", one);
      route.receivers = {one};
    }
    if (is_root && route.receivers.empty()) {
      in.error("", "the root route needs a receiver: it catches what no other route does");
    }
  }

  void read_id(config::Reader& in, RouteConfig& route) {
    in.optional("id", route.id,
                "stable name: the route keeps its groups when it is moved or changed");
    if (in.describing() || route.id.empty()) return;
    const auto [first, fresh] = ids.try_emplace(route.id, in.location("id"));
    if (!fresh) {
      in.error("id", "the route at line " + std::to_string(first->second.line) + " has the id '" +
                         route.id + "' already");
    }
  }

  void node(config::Reader& in, RouteConfig& route, int depth) {
    const bool is_root = depth == 0;
    read_id(in, route);
    if (!is_root || in.has("matchers")) {
      route.matchers = read_matchers(in, "matchers",
                                     "which issues this route is for: a text or a list of `name OP "
                                     "\"value\"`, OP one of = != =~ !~");
    }
    if (!is_root || in.has("continue")) {
      in.optional("continue", route.proceed, "after a match, try the following siblings too");
    }
    if (is_root && !route.matchers.empty()) in.error("matchers", "the root route has no matchers");
    if (is_root && route.proceed) in.error("continue", "the root route has no siblings");
    read_receivers(in, route, is_root);
    read_grouping(in, route);
    read_timers(in, route);
    read_escalation(in, route.further, route.receivers,
                    [this](config::Reader& at, std::string_view key, const std::string& name) {
                      receiver(at, key, name);
                    });
    read_flap(in, route.flap);
    if (!is_root) {
      read_times(in, route);
    } else {
      refuse_times(in);
    }
    children(in, route, depth);
  }

  void read_times(config::Reader& in, RouteConfig& route) const {
    route.mute_times =
        read_interval_names(in, "mute_time_intervals", intervals,
                            "names of `time_intervals`: nobody is told while one of them holds; "
                            "not inherited");
    route.active_times =
        read_interval_names(in, "active_time_intervals", intervals,
                            "names of `time_intervals`: nobody is told while none of them holds; "
                            "not inherited");
  }

  static void refuse_times(config::Reader& in) {
    if (in.describing()) return;
    for (const std::string_view key : {"mute_time_intervals", "active_time_intervals"}) {
      if (!in.has(key)) continue;
      std::vector<std::string> names;
      in.optional(key, names, "");
      in.error(key,
               "the root route has no time intervals: it catches what no other route does; give "
               "them to a route below it");
    }
  }

  void children(config::Reader& in, RouteConfig& route, int depth) {
    // A description of the tree would not end: one level stands for all.
    if (in.describing() && depth >= 1) return;
    std::vector<std::string> ends;  // canonical matchers of siblings that stop the search
    in.list("routes", "routes below this one, tried in order; each has the same keys",
            [&](config::Reader& child) {
              RouteConfig below;
              node(child, below, depth + 1);
              if (child.describing()) return;
              warn_if_unreachable(child, below, ends);
              route.routes.push_back(std::move(below));
            });
  }

  static void warn_if_unreachable(const config::Reader& in, const RouteConfig& route,
                                  std::vector<std::string>& ends) {
    const auto parsed = Matchers::parse(route.matchers);
    if (!parsed) return;
    const std::string own = parsed->canonical();
    for (const std::string& end : ends) {
      if (end != own && end != "{}") continue;
      in.warning("", "never reached: an earlier sibling with matchers " + end +
                         " takes these issues and has no continue");
      return;
    }
    if (!route.proceed) ends.push_back(own);
  }
};

}  // namespace

bool read_route(config::Reader& root, RouteConfig& route, const std::vector<std::string>& receivers,
                const std::vector<std::string>& intervals) {
  TreeReader tree{receivers, intervals, {}};
  return root.section("route", "who is told of which issues, and when: the root of a tree",
                      [&](config::Reader& in) { tree.node(in, route, 0); });
}

}  // namespace tocsin::routing
