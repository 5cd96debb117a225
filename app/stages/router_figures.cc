#include "app/stages/router_figures.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kRoutes = 200;

struct Sum {
  std::string_view help;
  std::string_view label;
  double value = 0;
  bool grows = false;
};

}  // namespace

const std::string& RouterFigures::route(const std::string& id) {
  const auto found = routes_.find(id);
  if (found != routes_.end()) return *found;
  return routes_.size() < kRoutes ? *routes_.insert(id).first : other_;
}

void RouterFigures::update(const routing::Router& router) {
  std::map<Key, Sum> sums;
  router.for_each_figure([&](const routing::Figure& one) {
    const std::string of(one.of);
    Sum& sum = sums[{std::string(one.name), one.label == "route" ? route(of) : of}];
    sum = {one.help, one.label, sum.value + one.value, one.grows};
  });
  for (const auto& [key, sum] : sums) {
    if (!sum.grows) {
      telemetry_.gauge(key.first, sum.help, {{sum.label, key.second}}).set(sum.value);
      continue;
    }
    double& seen = seen_[key];
    core::Counter& counter = telemetry_.counter(key.first, sum.help, {{sum.label, key.second}});
    if (sum.value > seen) counter.add(sum.value - seen);
    seen = sum.value;
  }
}

}  // namespace tocsin::app
