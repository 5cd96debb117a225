#include "app/config/route_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin::app {
namespace {

using routing::Matchers;
using routing::MatchOperator;
using routing::RouteConfig;

// The values that a term allows, where these can be listed: = "a", =~ "a|b".
std::optional<std::vector<std::string>> values_of(const Matchers::Term& term) {
  if (term.op == MatchOperator::equal) return std::vector<std::string>{term.value};
  if (term.op != MatchOperator::regex) return std::nullopt;
  std::vector<std::string> out(1);
  for (const char c : term.value) {
    if (c == '|') {
      out.emplace_back();
    } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-') {
      out.back() += c;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

// Does term `index` of `wide` hold for every issue that `narrow` matches?
bool implied(const Matchers& wide, std::size_t index, const Matchers& narrow) {
  const Matchers::Term& term = wide.terms()[index];
  if (term.op == MatchOperator::regex && term.value == ".*") return true;
  return std::any_of(narrow.terms().begin(), narrow.terms().end(), [&](const auto& given) {
    if (given.name != term.name) return false;
    if (given.op == term.op && given.value == term.value) return true;
    const auto values = values_of(given);
    return values && std::all_of(values->begin(), values->end(), [&](const std::string& value) {
             return wide.holds(index, value);
           });
  });
}

bool covers(const Matchers& wide, const Matchers& narrow) {
  for (std::size_t i = 0; i < wide.terms().size(); ++i) {
    if (!implied(wide, i, narrow)) return false;
  }
  return true;
}

/// Earlier siblings by the first value that they ask for: of thousands only a few are looked at.
class EarlierRoutes {
 public:
  explicit EarlierRoutes(const std::vector<std::optional<Matchers>>& all) : all_(all) {}

  void add(std::size_t index) {
    for (const Matchers::Term& term : all_[index]->terms()) {
      if (term.op != MatchOperator::equal) continue;
      by_value_[{term.name, term.value}].push_back(index);
      return;
    }
    others_.push_back(index);
  }
  /// The first that takes every issue which `narrow` matches.
  [[nodiscard]] std::optional<std::size_t> that_covers(const Matchers& narrow) const {
    std::optional<std::size_t> first = first_of(others_, narrow);
    for (const Matchers::Term& term : narrow.terms()) {
      const auto values = values_of(term);
      // A term that asks for one value is implied by one that allows nothing else.
      if (!values || values->empty()) continue;
      const auto found = by_value_.find({term.name, values->front()});
      if (found == by_value_.end()) continue;
      const auto here = first_of(found->second, narrow);
      if (here && (!first || *here < *first)) first = here;
    }
    return first;
  }

 private:
  [[nodiscard]] std::optional<std::size_t> first_of(const std::vector<std::size_t>& some,
                                                    const Matchers& narrow) const {
    const auto found = std::find_if(some.begin(), some.end(),
                                    [&](std::size_t one) { return covers(*all_[one], narrow); });
    return found == some.end() ? std::nullopt : std::optional(*found);
  }

  const std::vector<std::optional<Matchers>>& all_;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> by_value_;
  std::vector<std::size_t> others_;
};

/// What a route has of its parents where it says nothing itself.
struct Inherited {
  core::Duration interval = std::chrono::minutes(5);
  core::Duration repeat = std::chrono::hours(4);  // the shortest step
};

class RouteCheck {
 public:
  explicit RouteCheck(const config::Reader& root) : root_(root) {}

  void look(const RouteConfig& route, const std::string& path, Inherited values) const {
    const bool own = route.group_interval || route.repeat_interval;
    values.interval = route.group_interval.value_or(values.interval);
    if (route.repeat_interval && !route.repeat_interval->empty()) {
      values.repeat =
          std::min_element(route.repeat_interval->begin(), route.repeat_interval->end(),
                           [](const auto& a, const auto& b) { return a.every < b.every; })
              ->every;
    }
    if (own && values.repeat < values.interval) {
      root_.warning(path + (route.repeat_interval ? ".repeat_interval" : ".group_interval"),
                    "repeat_interval " + core::to_text(values.repeat) +
                        " is below group_interval " + core::to_text(values.interval) +
                        ": a group is looked at every group_interval, so it repeats no faster; "
                        "lower group_interval or raise repeat_interval");
    }
    children(route, path);
    uninherited_times(route, path);
    for (std::size_t i = 0; i < route.routes.size(); ++i) {
      look(route.routes[i], child(path, i), values);
    }
  }

 private:
  static std::string child(const std::string& path, std::size_t index) {
    return path + ".routes[" + std::to_string(index) + "]";
  }

  void children(const RouteConfig& route, const std::string& path) const {
    std::vector<std::optional<Matchers>> all;
    for (const RouteConfig& one : route.routes) {
      const auto parsed = Matchers::parse(one.matchers);
      all.push_back(parsed ? std::optional(*parsed) : std::nullopt);
    }
    EarlierRoutes earlier(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i]) continue;  // reported where it was read
      if (all[i]->empty()) {
        root_.warning(
            child(path, i),
            "this route has no matchers and takes every issue; add `matchers`, or put its "
            "keys into the route above it");
      }
      shadowed(path, all, earlier, i);
      if (!route.routes[i].proceed) earlier.add(i);
    }
  }

  /// Time intervals look as if they held for the routes below, as receivers and timers do.
  void uninherited_times(const RouteConfig& route, const std::string& path) const {
    if (!route.mute_times && !route.active_times) return;
    for (std::size_t i = 0; i < route.routes.size(); ++i) {
      const RouteConfig& below = route.routes[i];
      if (below.mute_times || below.active_times) continue;
      const std::string key = route.mute_times ? ".mute_time_intervals" : ".active_time_intervals";
      root_.warning(path + key, "time intervals are not inherited: the route of line " +
                                    std::to_string(root_.location(child(path, i)).line) +
                                    " below is told at all times; name the intervals there too, or "
                                    "write `mute_time_intervals: []` there if you mean that");
    }
  }

  void shadowed(const std::string& path, const std::vector<std::optional<Matchers>>& all,
                const EarlierRoutes& earlier, std::size_t index) const {
    const auto before = earlier.that_covers(*all[index]);
    if (!before) return;
    const std::string place = child(path, index);
    const config::Location first = root_.location(child(path, *before));
    root_.warning(root_.value(place + ".matchers") ? place + ".matchers" : place,
                  "no issue reaches this route: the route of line " + std::to_string(first.line) +
                      " (matchers " + all[*before]->canonical() +
                      ") takes all of them before; put this route first, or set `continue: true` "
                      "there");
  }

  const config::Reader& root_;
};

}  // namespace

void check_routes(const config::Reader& root, const AppConfig& config) {
  for (std::size_t i = 0; i < config.inhibit_rules.size(); ++i) {
    if (config.inhibit_rules[i].hold_after <= config.router.retention) continue;
    root.warning("inhibit_rules[" + std::to_string(i) + "].hold_after",
                 "a source is forgotten after router.retention, " +
                     core::to_text(config.router.retention) +
                     ", and holds no longer: raise retention, or lower hold_after");
  }
  if (config.has_route) RouteCheck(root).look(config.route, "route", {});
}

}  // namespace tocsin::app
